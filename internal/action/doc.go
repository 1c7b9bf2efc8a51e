// Package action is the form in which modules describe what can be asked of a node: their actions, what each takes and gives, how
// answers are shown and summed up. Server, agent and command line read the same description with this package, so all three refuse
// the same input with the same words.
//
// A module has actions. An action has a JSON schema for its input and one for its results (drafts 4 to 2020-12; draft 4 if none is
// named). Schemas refer to nothing outside themselves. What a schema says beside types:
//
//	title        how a form or a table calls the field; its own name if there is none
//	description  one sentence of help
//	default      what a field has that is not given
//	x-order      a number: fields are asked and shown in this order, then by name
//	format       one of Formats, or a standard one
//	writeOnly    true: values are secret and shown nowhere; "sensitive" means the same
//
// # Results of a call
//
// Every node that is asked has one Answer. Its Code is MCollective's: 0 done, 1 aborted, 2 unknown action, 3 missing data, 4 invalid data,
// 5 anything else. Above 5 are the states of nodes that gave no answer. With code 0 and 1 there may be data.
//
// # Bounds
//
// A description has at most MaxMetadataBytes, MaxActions actions, names of at most pxp.MaxNameBytes.
//
// # Errors
//
// All are of kind Invalid. They name the field and what is expected there, never a value: it may be secret.
//
// # Concurrency
//
// Everything is a value, or may be used concurrently once it is made.
//
// # Sources
//
// pxp-agent 1.15's external modules (metadata with configuration and actions), whose description this one is a superset of; MCollective 2.12
// and Choria 0.29 for display rules, aggregates, formats and codes.
package action
