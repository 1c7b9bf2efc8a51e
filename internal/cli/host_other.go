//go:build !linux

package cli

// hostCommands: the server runs on Linux only. Here are the agent, and the commands that ask a server.
var hostCommands, localTokens, localCA []declared
