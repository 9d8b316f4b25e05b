"""Files and streams of bytes: edge lists, Parquet, captured streams, atomic files."""
