"""Routes: numbers that say to which of several places a record, or a whole batch, goes."""

from __future__ import annotations

from pointstamp.containers.splitting import place as place
from pointstamp.containers.splitting import split_by_column as split_by_column
