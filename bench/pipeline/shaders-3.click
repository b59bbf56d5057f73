// Three shaders over the same bytes: on a device they share a transfer and a start with shaders-1.click's one.
TrafficSource(uniform, LENGTH 64) -> MarkIPHeader(14) -> DecIPTTL -> DecIPTTL -> DecIPTTL -> TrafficSink;
