package cli

import (
	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
)

var consoleCommand = asking{noun{
	use: "console", short: "See the fleet, its changes and its work in a browser",
	verbs: []declared{consoleOpen},
}}

var consoleOpen = verb[api.Nothing]{
	use: "open", short: "Print a link that opens the console and logs you in",
	long: `Print a link that opens the console and logs you in. It is good once, and for a minute; whoever has it within that time can log in
as you. The login can do what your token can: a token that is narrowed to roles gives a login that is.
The server must have the setting console_listen.`,
	example: "  tutti console open\n  tutti console open -o json",
	run: shows(api.SessionLink, func(to print.Printer, link api.LoginLink) error {
		to.Line(link.URL)
		return nil
	}),
}
