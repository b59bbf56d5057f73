// What a shader that does nothing costs on the CPU, beside source-sink.click.
TrafficSource(uniform, LENGTH 64) -> Null -> TrafficSink;
