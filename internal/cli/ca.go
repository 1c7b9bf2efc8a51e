package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
)

var caCommand = asking{noun{
	use: "ca", short: "Sign, revoke and see certificates",
	verbs: append([]declared{caList, caShow, caSign, caRevoke, caClean, caToken, caRotateServer}, localCA...),
}}

var caList = verb[api.CertificateListRequest]{
	use: "list", short: "List certificates and requests", example: "  tutti ca list\n  tutti ca list --state requested",
	prints: aList,
	flags: func(f flagSet, in *api.CertificateListRequest) {
		f.StringVar(&in.State, "state", "", "only those that are requested, signed or revoked")
	},
	run: lists(api.CertificateList, func(*api.CertificateListRequest) print.Table[api.Certificate] {
		return print.Table[api.Certificate]{
			Columns: []string{"name", "state", "serial", "expires", "fingerprint"},
			Spare:   []string{"serial"},
			Row: func(c api.Certificate) []any {
				return []any{c.Name, print.State(c.State), c.Serial, dayOf(c.NotAfter), c.Fingerprint}
			},
			Name:  func(c api.Certificate) string { return c.Name },
			Empty: "No certificates and no requests.",
		}
	}),
}

func dateOf(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.DateOnly)
}

var caShow = verb[api.NameRequest]{
	use: "show NAME", short: "Show one certificate or request", example: "  tutti ca show web-1.example.test",
	into: byName,
	run: shows(api.CertificateShow, func(to print.Printer, cert api.Certificate) error {
		rows := [][]string{
			{"Name", cert.Name},
			{"State", cert.State},
			{"Serial", cert.Serial},
			{"SHA256", cert.Fingerprint},
			{"Good from", dateOf(cert.NotBefore)},
			{"Expires", dateOf(cert.NotAfter)},
		}
		if cert.Received != nil {
			rows = append(rows, []string{"Received", cert.Received.UTC().Format(time.RFC3339)}, []string{"From", cert.From})
		}
		for _, name := range cert.AltNames {
			rows = append(rows, []string{"Alternative name", name})
		}
		for _, row := range flatten("", toAny(cert.Extensions), nil) {
			rows = append(rows, []string{"Extension", row[0] + " = " + row[1]})
		}
		if err := to.Rows(nil, rows); err != nil {
			return err
		}
		return to.Text(cert.PEM)
	}),
}

func toAny(texts map[string]string) map[string]any {
	values := make(map[string]any, len(texts))
	for key, text := range texts {
		values[key] = text
	}
	return values
}

// toEach does the same to each name and says so.
func toEach[Response any](ctx context.Context, c *call, op api.Op[api.NameRequest, Response], done string) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	for _, name := range c.args {
		if _, err := op.Call(ctx, client, api.NameRequest{Name: name}); err != nil {
			return err
		}
		c.printer().Line(name + " " + done)
	}
	return nil
}

var caRevoke = verb[api.Nothing]{
	use: "revoke NAME...", short: "Revoke certificates and close their connections", args: namesUnless("", "certificate"),
	destroys: func(ctx context.Context, c *call, _ *api.Nothing) (string, error) {
		return lossOfCertificates(ctx, c, "revoke")
	},
	example: "  tutti ca revoke web-1.example.test",
	run: func(ctx context.Context, c *call, _ *api.Nothing) error {
		return toEach(ctx, c, api.CertificateRevoke, "revoked")
	},
}

type caSignInput struct{ all, yes bool }

var caSign = verb[caSignInput]{
	use: "sign NAME... | --all", short: "Sign waiting requests", args: namesUnless("all", "certificate"),
	example: "  tutti ca sign web-1.example.test\n  tutti ca sign --all",
	long: `Sign waiting requests. --all lists those that wait now with their fingerprints, and signs them; what comes meanwhile
waits. Somebody at a terminal is asked first. On a node, ` + "`puppet agent --fingerprint`" + ` prints that of its request.`,
	flags: func(f flagSet, in *caSignInput) {
		f.BoolVar(&in.all, "all", false, "sign every request that waits")
		f.BoolVar(&in.yes, "yes", false, "do not ask")
	},
	run: func(ctx context.Context, c *call, in *caSignInput) error {
		if in.all {
			return signAll(ctx, c.app, in.yes)
		}
		return toEach(ctx, c, api.CertificateSign, "signed")
	},
}

// namesUnless wants names, or the flag that stands for them.
func namesUnless(flag, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		instead, _ := cmd.Flags().GetBool(flag)
		switch {
		case instead && len(args) > 0:
			return usageError{fmt.Errorf("give names or the flag, not both; usage: %s", cmd.UseLine())}
		case !instead && len(args) == 0:
			return usageError{fmt.Errorf("name at least one %s; usage: %s", what, cmd.UseLine())}
		}
		return nil
	}
}

// signAll signs what waits now. What may not be signed is named, and keeps nobody else waiting.
func signAll(ctx context.Context, a *app, yes bool) error {
	client, err := a.client()
	if err != nil {
		return err
	}
	list, err := api.CertificateList.Call(ctx, client, api.CertificateListRequest{State: "requested"})
	if err != nil {
		return err
	}
	if len(list.Items) == 0 {
		a.hint("No requests wait.")
		return nil
	}
	a.hint("%s:", fault.Count(len(list.Items), "waiting request"))
	for _, waiting := range list.Items {
		a.hint("  %s  SHA256 %s", waiting.Name, waiting.Fingerprint)
	}
	if !yes && a.system.canAsk() {
		if err := a.agreed("Sign them?"); err != nil {
			return err
		}
	}
	var refused error
	for _, waiting := range list.Items {
		_, err := api.CertificateSign.Call(ctx, client, api.NameRequest{Name: waiting.Name})
		switch kind := fault.Of(err); {
		case err == nil:
			a.printer().Line(waiting.Name + " signed")
		case kind == fault.Denied || kind == fault.Invalid || kind == fault.NotFound || kind == fault.Conflict:
			refused = errors.Join(refused, err)
		default:
			return errors.Join(refused, err)
		}
	}
	return refused
}

type caCleanInput struct {
	requested bool
	from      string
}

var caClean = verb[caCleanInput]{
	use: "clean NAME... | --requested", short: "Revoke certificates and forget them, so that the names can be asked for again",
	destroys: func(ctx context.Context, c *call, in *caCleanInput) (string, error) {
		if in.requested {
			return lossOfRequests(ctx, c, in.from)
		}
		return lossOfCertificates(ctx, c, "revoke and forget")
	},
	args:    namesUnless("requested", "certificate"),
	example: "  tutti ca clean web-1.example.test\n  tutti ca clean --requested --from 192.0.2.7",
	flags: func(f flagSet, in *caCleanInput) {
		f.BoolVar(&in.requested, "requested", false, "drop every request that waits instead; no certificate is touched")
		f.StringVar(&in.from, "from", "", "only requests from this address (IPv6: from its /64 network)")
	},
	run: func(ctx context.Context, c *call, in *caCleanInput) error {
		if !in.requested && in.from != "" {
			return usageError{errors.New("--from belongs to --requested")}
		}
		if !in.requested {
			return toEach(ctx, c, api.CertificateClean, "cleaned")
		}
		return showAnswer(ctx, c.app, api.RequestClean, api.RequestCleanRequest{From: in.from}, func(to print.Printer, done api.RequestCleanResponse) error {
			to.Line(fault.Count(done.Dropped, "request") + " dropped")
			return nil
		})
	},
}

type caTokenInput struct{ lifetime time.Duration }

var caToken = verb[caTokenInput]{
	use: "token [NAME]", short: "Make a one-time password with which a node joins", args: cobra.ArbitraryArgs,
	long: `Make a one-time password, which signs one certificate request at once. The command that joins a node with it is printed, too.
A stock puppet agent uses it if it stands in csr_attributes.yaml (challengePassword) before its first run:

  custom_attributes:
    1.2.840.113549.1.9.7: TOKEN`,
	example: "  tutti ca token web-1.example.test --lifetime 1h",
	flags: func(f flagSet, in *caTokenInput) {
		f.duration(&in.lifetime, "lifetime", 24*time.Hour, "how long it is good")
	},
	run: func(ctx context.Context, c *call, in *caTokenInput) error {
		if len(c.args) > 1 {
			return exactly(1)(c.cmd, c.args)
		}
		if in.lifetime < time.Second { // zero seconds would be the default
			return usageError{fmt.Errorf("--lifetime is %s; a token is good for at least a second", print.Duration(in.lifetime))}
		}
		request := api.JoinTokenRequest{Seconds: int64(in.lifetime.Seconds())}
		if len(c.args) == 1 {
			request.Name = c.args[0]
		}
		return showAnswer(ctx, c.app, api.JoinTokenCreate, request, func(to print.Printer, token api.JoinToken) error {
			to.Line(token.Token)
			to.Hint("Good once, until %s. On the node, as root:\n\n  %s\n\nWith --runs Puppet runs there at once, and every half hour from then on.",
				token.Expires.UTC().Format(time.RFC3339), joinCommand(c.app, token, request.Name))
			return nil
		})
	},
}

var caRotateServer = verb[api.Nothing]{
	use: "rotate-server", short: "Give the server a new key and certificate, and revoke its former ones",
	long: `Give the server a new key and certificate for its names, and revoke its former ones: for when the key may be known to others.
Nodes trust the CA and not one certificate: their connections stay, and new ones see the new certificate at once.`,
	example: "  tutti ca rotate-server",
	run: shows(api.ServerRotate, func(to print.Printer, made api.Certificate) error {
		to.Line(fmt.Sprintf("%s has a new certificate until %s, serial number %s", made.Name, dateOf(made.NotAfter), made.Serial))
		return nil
	}),
}

// joinCommand is what a person types on the node.
func joinCommand(a *app, token api.JoinToken, name string) string {
	server := "https://HOST:8140"
	if chosen, err := a.target(); err == nil {
		server = fromOutside(chosen.server)
	}
	command := "tutti agent join " + server + " --token " + token.Token + " --ca-fingerprint " + token.CAFingerprint
	if name != "" {
		command += " --certname " + name
	}
	return command
}

// fromOutside is an address of this machine as others know it.
func fromOutside(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	ip := net.ParseIP(u.Hostname())
	if host, err := os.Hostname(); err == nil && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()) {
		u.Host = net.JoinHostPort(host, u.Port())
	}
	return u.String()
}
