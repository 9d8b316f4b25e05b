"""Counts of what workers do, and the HTTP endpoint at which Prometheus scrapes them.

Workers with `metrics=` are made of classes that count (`metering`), as those with a log are made of
classes that log; without it nothing here is imported. The counts stay in the worker until a scrape
asks for them (`sample_requests`), over the control connections that are there anyway.
"""
