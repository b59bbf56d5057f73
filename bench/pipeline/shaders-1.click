// One shader at work behind the one that finds the header. Beside it shaders-3.click: three over the same bytes.
TrafficSource(uniform, LENGTH 64) -> MarkIPHeader(14) -> DecIPTTL -> TrafficSink;
