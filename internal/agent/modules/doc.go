// Package modules makes modules of executables: a node's own, and those that the code of its environment supplies (Supplies). Two contracts are
// known, by what lies in the modules' directory:
//
//	NAME                             pxp-agent's external modules
//	NAME/metadata.json, NAME/run     the same, with its metadata in a file; NAME/run-<os>_<arch> and NAME/run-<os> come before run
//	NAME, NAME.json                  Choria's external agents; the JSON is their DDL
//	NAME/NAME-<os>_<arch>, NAME.json the same, with one executable for each platform (linux_amd64)
//
// An executable has no extension (on Windows .exe or .bat). A module that cannot be used is passed over and told of as a Problem; the
// others are there.
//
// # pxp-agent's contract
//
//	NAME metadata   prints what the module can do, as package action has it
//	NAME ACTION     reads {"input": ..., "configuration": ...} from standard input, prints its results as JSON
//
// The configuration is NAME.conf in another directory, JSON that must fit the schema that the module gives for it. Results that fit their
// schema are results, whatever the exit code. With another exit code than 0 and no such results the action was aborted: standard error
// says why. output_files is never given: whoever runs a program keeps its output. Modules that want that key must not be used here; none
// that is known does.
//
// # Choria's contract
//
//	NAME REQUEST REPLY PROTOCOL   reads JSON from the file REQUEST and writes JSON into the file REPLY
//
// The arguments are also in the environment: CHORIA_EXTERNAL_REQUEST, _REPLY and _PROTOCOL, and beside them _CONFIG (NAME.cfg in the
// directory of configurations, there or not) and _FACTS (a file with the node's facts as they were submitted last). When it is loaded, a
// module is asked whether it wants to be (the protocol …activation_request); it has 2 seconds to answer {"activate": true}. An action is
// the protocol …rpc_request. A statuscode of 0 means results, 1 that the action was aborted, any other that it failed. Results get the
// DDL's defaults, and must fit. What the program prints goes to the agent's log.
//
// The files lie where the transaction has its place. The agent's own binary makes them, runs the program, and prints what became of it
// (Main): it is the program that a Runner watches over, and the module's program belongs to its group, so that both end together.
//
// # Questions
//
// An action that says that it only reads answers blocking requests without a record of them: its program runs below the agent, ends with it and with the
// action's time, and its files are removed. So many a module are answered at a time: 8. What is no blocking request is an order like any other.
//
// # Before each use
//
// The files of a module are looked at before each use. If one was changed, the module is read anew; if it describes itself as before,
// it is used, else the order is refused until the agent is restarted: servers and people know the former description. Between the look and the start
// a file may still change; whoever can do that is the node's owner.
//
// Files of modules that code supplies are hashed before each use. A version that was changed is fetched again, or is not run. It stays as long as
// a program of a module of this name runs.
//
// # Bounds
//
// Metadata has at most 1 MB and is waited for 30 seconds; so many modules are loaded: 100. A reply has at most 4 MB. Of what a program
// of Choria's contract prints, 8 KB a stream are logged. Schemas refer to nothing outside themselves.
//
// # Errors
//
// Load returns only errors of the directory, of kind Unavailable. Those of LoadFile are Invalid.
//
// # Concurrency
//
// Modules may be used concurrently.
//
// # Sources
//
// pxp-agent 1.15 and Choria 0.29 (external agents).
package modules
