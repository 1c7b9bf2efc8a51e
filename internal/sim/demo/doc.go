// Package demo shows Tutti at work: a server, a sample control repository with
// real modules, and two real `puppet agent`s that apply it below a scratch
// directory; agents and a simulated fleet that take orders; and a change on its
// way from a branch to the fleet, and back. Every step is a command that is printed
// before it runs, so that what is seen can be repeated by hand. What is not as it
// shall be ends the demo with an error.
//
// The agents have their own configuration directories; nothing outside the
// scratch directory changes.
package demo
