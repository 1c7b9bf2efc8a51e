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

func (a *app) caCommand() *cobra.Command {
	verbs := []*cobra.Command{
		a.caList(), a.caShow(),
		a.caSign(),
		caAct(a, "revoke NAME...", "Revoke certificates and close their connections", api.CertificateRevoke, "revoked"),
		a.caClean(),
		a.caToken(), a.caRotateServer(),
	}
	return a.withAccess(noun("ca", "Sign, revoke and see certificates", append(verbs, localCA(a)...)...))
}

func (a *app) caList() *cobra.Command {
	var state string
	cmd := &cobra.Command{
		Use: "list", Short: "List certificates and requests", Args: exactly(0), Example: "  tutti ca list\n  tutti ca list --state requested",
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := ask(cmd.Context(), a, api.CertificateList, api.CertificateListRequest{State: state})
			if err != nil {
				return err
			}
			return print.List(a.printer(), list.Items, print.Table[api.Certificate]{
				Columns: []string{"name", "state", "serial", "expires", "fingerprint (SHA256)"},
				Row: func(c api.Certificate) []string {
					return []string{c.Name, c.State, c.Serial, dateOf(c.NotAfter), c.Fingerprint}
				},
				Name:  func(c api.Certificate) string { return c.Name },
				Empty: "No certificates and no requests.",
			})
		},
	}
	cmd.Flags().StringVar(&state, "state", "", "only those that are requested, signed or revoked")
	return cmd
}

func dateOf(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.DateOnly)
}

func (a *app) caShow() *cobra.Command {
	return &cobra.Command{
		Use: "show NAME", Short: "Show one certificate or request", Args: exactly(1), Example: "  tutti ca show web-1.example.test",
		RunE: func(cmd *cobra.Command, args []string) error {
			cert, err := ask(cmd.Context(), a, api.CertificateShow, api.NameRequest{Name: args[0]})
			if err != nil {
				return err
			}
			if a.printer().AsJSON() {
				return a.printer().JSON(cert)
			}
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
			if err := a.printer().Rows(nil, rows); err != nil {
				return err
			}
			_, err = fmt.Fprint(a.system.Out, cert.PEM)
			return err
		},
	}
}

func toAny(texts map[string]string) map[string]any {
	values := make(map[string]any, len(texts))
	for key, text := range texts {
		values[key] = text
	}
	return values
}

// caAct is a verb that does the same to each name and says so.
func caAct[Response any](a *app, use, short string, op api.Op[api.NameRequest, Response], done string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Example: "  tutti ca " + use[:len(use)-len(" NAME...")] + " web-1.example.test",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError{fmt.Errorf("name at least one certificate; usage: %s", cmd.UseLine())}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := a.client()
			if err != nil {
				return err
			}
			for _, name := range args {
				if _, err := op.Call(cmd.Context(), client, api.NameRequest{Name: name}); err != nil {
					return err
				}
				a.say(name + " " + done)
			}
			return nil
		},
	}
}

// caSign signs requests by name, or all that wait.
func (a *app) caSign() *cobra.Command {
	var all bool
	cmd := caAct(a, "sign NAME...", "Sign waiting requests", api.CertificateSign, "signed")
	cmd.Use, cmd.Example = "sign NAME... | --all", cmd.Example+"\n  tutti ca sign --all"
	named, byName := cmd.Args, cmd.RunE
	cmd.Args = namesUnless(&all, named)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !all {
			return byName(cmd, args)
		}
		return signAll(a, cmd.Context())
	}
	cmd.Flags().BoolVar(&all, "all", false, "sign every request that waits")
	return cmd
}

// namesUnless wants names, or the flag that stands for them.
func namesUnless(flag *bool, named cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case *flag && len(args) > 0:
			return usageError{fmt.Errorf("give names or the flag, not both; usage: %s", cmd.UseLine())}
		case *flag:
			return nil
		}
		return named(cmd, args)
	}
}

// signAll signs what waits now. What may not be signed is named, and keeps nobody else waiting.
func signAll(a *app, ctx context.Context) error {
	client, err := a.client()
	if err != nil {
		return err
	}
	list, err := api.CertificateList.Call(ctx, client, api.CertificateListRequest{State: "requested"})
	if err != nil {
		return err
	}
	var refused error
	for _, waiting := range list.Items {
		_, err := api.CertificateSign.Call(ctx, client, api.NameRequest{Name: waiting.Name})
		switch kind := fault.Of(err); {
		case err == nil:
			a.say(waiting.Name + " signed")
		case kind == fault.Denied || kind == fault.Invalid || kind == fault.NotFound || kind == fault.Conflict:
			refused = errors.Join(refused, err)
		default:
			return errors.Join(refused, err)
		}
	}
	if len(list.Items) == 0 {
		a.hint("No requests wait.")
	}
	return refused
}

// caClean forgets names, or drops the requests that wait.
func (a *app) caClean() *cobra.Command {
	var requested bool
	var from string
	cmd := caAct(a, "clean NAME...", "Revoke certificates and forget them, so that the names can be asked for again", api.CertificateClean, "cleaned")
	cmd.Use, cmd.Example = "clean NAME... | --requested", cmd.Example+"\n  tutti ca clean --requested --from 192.0.2.7"
	named, byName := cmd.Args, cmd.RunE
	cmd.Args = namesUnless(&requested, named)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !requested && from != "" {
			return usageError{errors.New("--from belongs to --requested")}
		}
		if !requested {
			return byName(cmd, args)
		}
		done, err := ask(cmd.Context(), a, api.RequestClean, api.RequestCleanRequest{From: from})
		if err != nil {
			return err
		}
		if a.printer().AsJSON() {
			return a.printer().JSON(done)
		}
		a.say(fmt.Sprintf("%d requests dropped", done.Dropped))
		return nil
	}
	cmd.Flags().BoolVar(&requested, "requested", false, "drop every request that waits instead; no certificate is touched")
	cmd.Flags().StringVar(&from, "from", "", "only requests from this address (IPv6: from its /64 network)")
	return cmd
}

func (a *app) caToken() *cobra.Command {
	var lifetime time.Duration
	cmd := &cobra.Command{
		Use: "token [NAME]", Short: "Make a one-time password with which a node joins",
		Long: `Make a one-time password, which signs one certificate request at once. The command that joins a node with it is printed, too.
A stock puppet agent uses it if it stands in csr_attributes.yaml (challengePassword) before its first run:

  custom_attributes:
    1.2.840.113549.1.9.7: TOKEN`,
		Example: "  tutti ca token web-1.example.test --lifetime 1h",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return exactly(1)(cmd, args)
			}
			if lifetime < time.Second { // zero seconds would be the default
				return usageError{fmt.Errorf("--lifetime is %s; a token is good for at least a second", lifetime)}
			}
			request := api.JoinTokenRequest{Seconds: int64(lifetime.Seconds())}
			if len(args) == 1 {
				request.Name = args[0]
			}
			token, err := ask(cmd.Context(), a, api.JoinTokenCreate, request)
			if err != nil {
				return err
			}
			if a.printer().AsJSON() {
				return a.printer().JSON(token)
			}
			a.say(token.Token)
			a.hint("Good once, until %s. On the node:\n\n  %s", token.Expires.UTC().Format(time.RFC3339), joinCommand(a, token, request.Name))
			return nil
		},
	}
	cmd.Flags().DurationVar(&lifetime, "lifetime", 24*time.Hour, "how long it is good")
	return cmd
}

func (a *app) caRotateServer() *cobra.Command {
	return &cobra.Command{
		Use: "rotate-server", Short: "Give the server a new key and certificate, and revoke its former ones", Args: exactly(0),
		Long: `Give the server a new key and certificate for its names, and revoke its former ones: for when the key may be known to others.
Nodes trust the CA and not one certificate: their connections stay, and new ones see the new certificate at once.`,
		Example: "  tutti ca rotate-server",
		RunE: func(cmd *cobra.Command, _ []string) error {
			made, err := ask(cmd.Context(), a, api.ServerRotate, api.Nothing{})
			if err != nil {
				return err
			}
			if a.printer().AsJSON() {
				return a.printer().JSON(made)
			}
			a.say(fmt.Sprintf("%s has a new certificate until %s, serial number %s", made.Name, dateOf(made.NotAfter), made.Serial))
			return nil
		},
	}
}

// joinCommand is what a person types on the node.
func joinCommand(a *app, token api.JoinToken, name string) string {
	server := "https://HOST:8140"
	if config, err := a.serverConfig(); err == nil {
		server = fromOutside(config.Server)
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
