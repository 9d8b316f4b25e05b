"""A service: a dataflow whose workers stay, fed and read while it runs.

`embedded.serve` runs it on workers of this machine, `pointstamp.spark.serve` on the
tasks of a Spark job; what is driven is the same `Service` object.
"""
