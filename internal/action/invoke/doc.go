// Package invoke takes an order to call an action: it finds the action's description, checks the input with it, finds the nodes that are meant and
// those that may be asked, asks them, and has the call recorded in short. What changes something becomes a job instead; Order makes its part of the job's spec.
//
// # What is checked, in this order
//
//  1. The module and its action are known: the newest description that nodes have counts. NotFound.
//  2. Asking is for actions that only read; others are ordered as jobs. Invalid.
//  3. The input fits. Invalid.
//  4. The nodes that are meant, and who may ask each of them. Denied, unless they are to be left out: then each is told as denied.
//  5. The module as each node has it: a node without it, or whose version of the action changes something, is told so and not asked.
//
// # Concurrency
//
// A Service may be used concurrently.
package invoke
