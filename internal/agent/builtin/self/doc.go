// Package self is the built-in module rpcutil: it tells of the node's agent, of its modules, facts and classes, and answers data
// functions (get_data) by way of the other modules.
//
// Facts are those that the agent resolved last; where it keeps none, Facter is asked. Classes are those of the last catalog that Puppet
// applied.
package self
