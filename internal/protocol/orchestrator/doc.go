// Package orchestrator speaks version 1 of the orchestrator's HTTP API, below /orchestrator/v1, over the jobs of package job: for clients
// of Puppet Enterprise that start, watch and stop work. There is one model: what is started here is a job like any other, under the same
// number, and jobs from elsewhere are shown here.
//
// # States
//
// A job that is queued here is ready there; the other states have the same names. A run that waits is new there, one that was sent is
// ready; succeeded is finished; killed is stopped; failed and skipped stay, and every other end is errored: there is no result.
//
// # Events
//
// The number of an event is that of the change in its job (job.Run.Began, job.Run.Change, job.Job.OwnChange), so that events have the same
// numbers whenever they are asked for, also after a restart. Clients ask for all events again and again without a pause: feed.go keeps them
// as they are sent, reads only what is new, and answers at a measured pace.
//
// # Not here
//
// Plans that the server runs, targets without an agent (SSH, WinRM), and reports of usage before today. docs/enterprise-api-compatibility.md
// has every route and every difference.
//
// # Errors
//
// problem.go is the table of kinds. Internal errors are logged and shown as a reference only.
//
// # Concurrency
//
// Handlers may run concurrently.
//
// # Sources
//
// Puppet Enterprise's documentation of the orchestrator API (2016.2 to 2021.7), and what its public clients send and read.
package orchestrator
