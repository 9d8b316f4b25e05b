"""Counts of what workers do, the HTTP endpoint at which Prometheus scrapes them, and OpenTelemetry.

Workers with `metrics=` or `telemetry=` are made of classes that count (`metering`), as those with a
log are made of classes that log; without them nothing here is imported. The counts stay in the
worker until a scrape asks for them (`sample_requests`), over the control connections that are there
anyway.
"""
