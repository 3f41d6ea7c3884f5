"""The published ECMAScript number stream: made in columns and in parallel, digested in order.

`slots`, `text`, `lines`  the text of many doubles at once
`stream`                  which doubles, in which order; checkpoints, partitions, and that they join up
`landmarks`               checkpoints that ship with the kit, so that the partitions need no walk first
`transport`, `job`        partitions made in Spark, brought to the driver in order, hashed there
`published`               the digests to compare with
`documents`               the stream as documents for a canonicaliser
"""
