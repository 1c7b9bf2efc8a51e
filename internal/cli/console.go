package cli

import (
	"context"
	"net/url"
	"strings"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
)

var consoleCommand = asking{noun{
	use: "console", short: "See the fleet, its changes and its work in a browser",
	verbs: []declared{consoleOpen},
}}

// opening is what a link is asked for.
type opening struct{ page string }

var consoleOpen = verb[opening]{
	use: "open", short: "Print a link that opens the console and logs you in",
	long: `Print a link that opens the console and logs you in. It is good once, and for a minute; whoever has it within that time can log in
as you. The login can do what your token can: a token that is narrowed to roles gives a login that is.
The server must have the setting console_listen.`,
	example: "  tutti console open\n  tutti console open --page '/nodes?state=failed'",
	flags: func(f flagSet, in *opening) {
		f.StringVar(&in.page, "page", "", "the page to open, such as /nodes?state=failed; the overview without it")
	},
	run: func(ctx context.Context, c *call, in *opening) error {
		if in.page != "" && (!strings.HasPrefix(in.page, "/") || strings.HasPrefix(in.page, "//")) {
			return usageError{fault.New(fault.Invalid, "--page is %.80q; it is a page of the console, and begins with one /", in.page)}
		}
		link, err := ask(ctx, c.app, api.SessionLink, api.Nothing{})
		if err != nil {
			return err
		}
		if address, code, found := strings.Cut(link.URL, "#"); found && in.page != "" {
			link.URL = address + "?" + url.Values{"page": {in.page}}.Encode() + "#" + code
		}
		return print.One(c.printer(), link, func(to print.Printer, link api.LoginLink) error {
			to.Line(link.URL)
			return nil
		})
	},
}
