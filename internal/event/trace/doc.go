// Package trace tells a collector of traces (OpenTelemetry) how long the steps of one catalog, one job or one release took, and on
// which server each of them was.
//
// Story: a Recorder is told of steps when they are over, with their times. Catalogs, Jobs and Releases stand before the parts that
// they are named after, and tell it of what those did; nothing else knows of traces. Steps go to the collector in batches.
//
// # One trace, many servers
//
// Nothing is sent along from server to server. The identity of a trace and of each step is made of what all servers know:
//
//	trace                                identity
//	what one Puppet run asked for        its transaction_uuid, without dashes
//	a compilation that no run waits for  digest of the installation and the compilation's number
//	a job                                digest of the installation and the job's number
//	a release                            digest of the installation and the release's number
//
// So steps of one thing meet in one trace, whichever server did them, and a step that is told twice is the same step. Whether a trace
// is kept follows from its identity too (Config.Share): all servers keep the same ones.
//
// # Failure
//
// Traces are hints for people. What waits is bounded (queued steps), and what the collector does not take is lost: the log says so
// once, and once when it takes them again. Nobody waits for the collector, but Close does, for a moment.
//
// # Source
//
// OpenTelemetry protocol 1.x over HTTP, in protobuf: POST of an ExportTraceServiceRequest, which is a TracesData on the wire.
//
// # Errors
//
// Invalid for a Config that cannot be used.
//
// # Concurrency
//
// A Recorder may be used concurrently. A nil one records nothing.
package trace
