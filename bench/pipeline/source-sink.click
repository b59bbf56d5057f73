// What sources and sinks cost.
TrafficSource(uniform, LENGTH 64) -> TrafficSink;
