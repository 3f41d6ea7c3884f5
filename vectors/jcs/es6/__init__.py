"""The published ECMAScript number stream: made in columns and in parallel, digested in order.

`stream`            which doubles, in which order, and their text; checkpoints, partitions, and that they join up
`landmarks.json`    checkpoints that ship with the kit, so that the partitions need no walk first
`transport`, `job`  partitions made in Spark, brought to the driver in order, hashed and compared there
"""
