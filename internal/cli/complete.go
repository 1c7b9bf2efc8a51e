package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/facts"
	"github.com/tutti-project/tutti/internal/pql"
)

// What a shell offers for an argument is found by its word in the verb's use (NODE, ENVIRONMENT), for a flag by its name: a new verb has it
// without a word of its own. Verbs that need more have a complete of their own.

// completeTime is System.Completes where nobody says otherwise.
const completeTime = 2 * time.Second

// completion says what is offered: one of its fields is set.
type completion struct {
	ask   func(ctx context.Context, a *app, q asked) []string // values of the server; a tab divides a value from what it is
	fixed []string
	files bool
	dirs  bool
	none  string // why nothing is
}

// asked is what somebody has typed when they ask for what follows.
type asked struct {
	cmd   *cobra.Command
	args  []string
	begun string
}

func (c completion) offer(a *app, q asked) ([]string, cobra.ShellCompDirective) {
	switch {
	case c.files:
		return nil, cobra.ShellCompDirectiveDefault
	case c.dirs:
		return nil, cobra.ShellCompDirectiveFilterDirs
	case c.ask == nil:
		return beginning(c.fixed, q.begun), cobra.ShellCompDirectiveNoFileComp
	}
	values := beginning(c.ask(q.cmd.Context(), a, q), q.begun)
	return slices.DeleteFunc(values, func(value string) bool {
		name, _, _ := strings.Cut(value, "\t")
		return slices.Contains(q.args, name) // said already
	}), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

func beginning(values []string, begun string) (some []string) {
	for _, value := range values {
		if strings.HasPrefix(value, begun) {
			some = append(some, value)
		}
	}
	return some
}

// inTime gives a function that offers values its time.
func inTime(s System, offer cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		before := completing(cmd)
		ctx, cancel := context.WithTimeout(before, cmp.Or(s.Completes, completeTime))
		defer cmd.SetContext(before)
		defer cancel()
		cmd.SetContext(ctx)
		return offer(cmd, args, begun)
	}
}

var (
	effects       = []string{"deny", "approve", "warn"}
	eventStatuses = []string{"success", "failure", "noop", "audit", "skipped", "changed", "unchanged", "failed", "interrupted"}
	eventKinds    = []string{"begin", "resource", "missing", "end", "alarm", "kept"}
)

// completes gives a tree of commands what is offered for their arguments and flags, where they have nothing of their own.
func (a *app) completes(cmd *cobra.Command) {
	if words := argumentWords(cmd.Use); cmd.ValidArgsFunction == nil && cmd.Runnable() && !cmd.HasSubCommands() {
		cmd.ValidArgsFunction = inTime(a.system, func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			if word, ok := words.at(len(args)); ok {
				return completionOf(cmd, word).offer(a, asked{cmd, args, begun})
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		})
	}
	add := func(flag *pflag.Flag) {
		offered, known := flagCompletion(cmd, flag.Name)
		if _, own := cmd.GetFlagCompletionFunc(flag.Name); own || flag.Value.Type() == "bool" || !known {
			return
		}
		several := flag.Value.Type() == "stringSlice"
		_ = cmd.RegisterFlagCompletionFunc(flag.Name, inTime(a.system, func(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
			return offered.inList(a, cmd, begun, several)
		})) // the flag is there
	}
	cmd.Flags().VisitAll(add)
	cmd.PersistentFlags().VisitAll(add)
	for _, below := range cmd.Commands() {
		a.completes(below)
	}
}

// inList offers values also behind a comma, where a flag takes several.
func (c completion) inList(a *app, cmd *cobra.Command, begun string, several bool) ([]string, cobra.ShellCompDirective) {
	before := ""
	if i := strings.LastIndex(begun, ","); several && i >= 0 && !c.files && !c.dirs {
		before, begun = begun[:i+1], begun[i+1:]
	}
	values, directive := c.offer(a, asked{cmd, nil, begun})
	for i := range values {
		values[i] = before + values[i]
	}
	return values, directive
}

func flagCompletion(cmd *cobra.Command, flag string) (completion, bool) {
	for _, key := range []string{cmd.CommandPath() + " --" + flag, cmd.CommandPath() + " *", flag} {
		if strings.HasSuffix(key, "*") && flagValues[flag].asks() {
			continue
		}
		if c, ok := flagValues[key]; ok {
			return c, true
		}
	}
	return completion{}, false
}

// asks says whether something can be offered.
func (c completion) asks() bool { return c.ask != nil || c.files || c.dirs || len(c.fixed) > 0 }

// completionOf is what is offered for a word of a use.
func completionOf(cmd *cobra.Command, word string) completion {
	if strings.ToLower(word) == word { // live|released|unset
		return completion{fixed: strings.Split(word, "|")}
	}
	if own, ok := arguments[cmd.CommandPath()+" "+word]; ok {
		return own
	}
	return arguments[word]
}

// useWords are the words for arguments; the last one may stand for all that follow.
type useWords struct {
	words  []string
	repeat bool
}

// at is the word for an argument.
func (w useWords) at(i int) (string, bool) {
	if i >= len(w.words) && w.repeat {
		i = len(w.words) - 1
	}
	if i < 0 || i >= len(w.words) {
		return "", false
	}
	return w.words[i], true
}

var argumentWord = regexp.MustCompile(`^[A-Z][A-Z=-]*`)

// argumentWords reads a use: `rename OLD NEW`, `sign NAME... | --all`, `show [MODEL|MODEL[INSTANCE]]`, `mode [NODE] [live|released]`.
func argumentWords(use string) (all useWords) {
	for _, word := range strings.Fields(use)[1:] {
		if strings.HasPrefix(word, "-") || strings.HasPrefix(word, "(") || word == "|" {
			break
		}
		all.repeat = strings.Contains(word, "...")
		word = strings.TrimPrefix(word, "[")
		if name := argumentWord.FindString(word); name != "" {
			all.words = append(all.words, name)
			continue
		}
		all.words = append(all.words, strings.Trim(strings.TrimSuffix(word, "..."), "[]"))
	}
	return all
}

// valuesOf makes values of a list that comes at once.
func valuesOf[Request, T any](op api.Op[Request, api.List[T]], request func(asked) Request, value func(T) string) func(context.Context, *app, asked) []string {
	return func(ctx context.Context, a *app, q asked) (values []string) {
		list, err := ask(ctx, a, op, request(q))
		if err != nil {
			return nil // a shell has no place for words
		}
		for _, item := range list.Items {
			values = append(values, value(item))
		}
		return values
	}
}

func nothing(asked) api.Nothing { return api.Nothing{} }

// about adds what a value is.
func about(value string, words ...string) string {
	words = slices.DeleteFunc(words, func(word string) bool { return word == "" })
	if len(words) == 0 {
		return value
	}
	return value + "\t" + print.OneLine(strings.Join(words, ", "))
}

// offerNodes offers the nodes whose names begin so.
func offerNodes(ctx context.Context, a *app, q asked) []string {
	request := api.NodeListRequest{Limit: maxCompletions}
	if q.begun != "" {
		request.Where = `certname ~ "^` + strings.ReplaceAll(regexp.QuoteMeta(q.begun), `\`, `\\`) + `"`
	}
	return valuesOf(api.NodeList, func(asked) api.NodeListRequest { return request }, func(n api.Node) string {
		return about(n.Name, n.Environment, n.Status)
	})(ctx, a, q)
}

func offerCertificates(state string) func(context.Context, *app, asked) []string {
	return valuesOf(api.CertificateList, func(asked) api.CertificateListRequest { return api.CertificateListRequest{State: state} },
		func(c api.Certificate) string { return about(c.Name, c.State) })
}

func offerEnvironments(ctx context.Context, a *app, q asked) []string {
	return valuesOf(api.EnvironmentList, nothing, func(v api.Version) string { return about(v.Environment, "version "+short(v.ID)) })(ctx, a, q)
}

// offerVersions are those of the environment that the command line names, or of all.
func offerVersions(ctx context.Context, a *app, q asked) (all []string) {
	environment, _ := q.cmd.Flags().GetString("environment")
	if environment == "" && len(q.cmd.Flags().Args()) > 0 && strings.Contains(q.cmd.Use, " ENVIRONMENT") {
		environment = q.cmd.Flags().Args()[0]
	}
	names := []string{environment}
	if environment == "" {
		names = nil
		for _, value := range offerEnvironments(ctx, a, q) {
			name, _, _ := strings.Cut(value, "\t")
			names = append(names, name)
		}
	}
	for _, name := range names {
		all = append(all, valuesOf(api.VersionList, func(asked) api.EnvironmentRequest { return api.EnvironmentRequest{Environment: name} },
			func(v api.Version) string {
				return about(v.ID, v.Environment, v.Origin, v.DeployedAt.Local().Format(time.DateTime))
			})(ctx, a, q)...)
	}
	return all
}

func offerReports(ctx context.Context, a *app, q asked) []string {
	return valuesOf(api.ReportList, func(asked) api.ReportListRequest { return api.ReportListRequest{Limit: maxCompletions} },
		func(r api.Report) string { return about(r.ID, r.Name, r.Status) })(ctx, a, q)
}

func offerReleases(ctx context.Context, a *app, q asked) []string {
	return valuesOf(api.ReleaseList, func(asked) api.ReleaseListRequest { return api.ReleaseListRequest{Limit: maxCompletions} },
		func(r api.Release) string { return about(r.ID, r.Environment, r.State, r.Description) })(ctx, a, q)
}

func offerPreviews(ctx context.Context, a *app, q asked) []string {
	return valuesOf(api.PreviewList, func(asked) api.PreviewListRequest { return api.PreviewListRequest{Limit: maxCompletions} },
		func(p api.Preview) string { return about(p.ID, p.Environment, p.State, p.Description) })(ctx, a, q)
}

func offerGroups(ctx context.Context, a *app, q asked) []string {
	return valuesOf(api.GroupList, nothing, func(g api.Group) string { return about(g.Name, g.Description) })(ctx, a, q)
}

// offerWaves are the waves that have names: those of groups, and what is left.
func offerWaves(ctx context.Context, a *app, q asked) []string {
	offers := []string{about("rest", "all that no wave before has")}
	for _, group := range offerGroups(ctx, a, q) {
		offers = append(offers, "@"+group)
	}
	return offers
}

func offerRoles(ctx context.Context, a *app, q asked) []string {
	return valuesOf(api.RoleList, nothing, func(r api.Role) string { return about(r.Name, r.Description) })(ctx, a, q)
}

func offerUsers(ctx context.Context, a *app, q asked) []string {
	return valuesOf(api.UserList, func(asked) api.PageRequest { return api.PageRequest{Limit: maxCompletions} },
		func(u api.User) string { return about(u.Name, u.State) })(ctx, a, q)
}

// offerSetAside are what the server keeps that is asked.
func offerSetAside(ctx context.Context, a *app, q asked) []string {
	return valuesOf(api.SetAsideList, func(asked) api.PageRequest { return api.PageRequest{Limit: maxCompletions} },
		func(p api.SetAside) string { return about(p.Number, p.Kind+" of "+p.Node) })(ctx, a, q)
}

// offerTokens are those of the user that the command line names, or of oneself. One without a label is of a login.
func offerTokens(ctx context.Context, a *app, q asked) []string {
	user, _ := q.cmd.Flags().GetString("user")
	return valuesOf(api.TokenList, func(asked) api.TokenListRequest {
		return api.TokenListRequest{User: first(user, api.Me), Limit: maxCompletions}
	}, func(t api.AccessToken) string {
		return about(first(t.Label, t.ID), "made "+t.CreatedAt.Local().Format(time.DateTime))
	})(ctx, a, q)
}

func offerPolicies(ctx context.Context, a *app, q asked) []string {
	return valuesOf(api.PolicyList, nothing, func(p api.Policy) string { return about(p.Name, p.Message) })(ctx, a, q)
}

func offerSources(ctx context.Context, a *app, q asked) []string {
	return valuesOf(api.SourceList, nothing, func(s api.CodeSource) string { return about(s.Name, s.URL) })(ctx, a, q)
}

func offerFreezes(ctx context.Context, a *app, q asked) []string {
	return valuesOf(api.FreezeList, nothing, func(f api.Freeze) string { return about(f.Name) })(ctx, a, q)
}

func offerSavedQueries(ctx context.Context, a *app, q asked) []string {
	return valuesOf(api.QueryList, nothing, func(s api.SavedQuery) string { return about(s.Name, s.Description) })(ctx, a, q)
}

func offerNoiseRules(ctx context.Context, a *app, q asked) []string {
	return valuesOf(api.NoiseList, nothing, func(n api.NoiseRule) string { return about(n.Name, n.Why) })(ctx, a, q)
}

func offerEngines(ctx context.Context, a *app, q asked) []string {
	return valuesOf(api.EngineList, nothing, func(e api.Engine) string { return about(e.Name, strings.TrimSpace(e.By+" "+e.Puppet)) })(ctx, a, q)
}

// offerServers are those that use the same records.
func offerServers(ctx context.Context, a *app, _ asked) (offered []string) {
	cluster, err := ask(ctx, a, api.ClusterStatus, api.Nothing{})
	if err != nil {
		return nil
	}
	for _, s := range cluster.Servers {
		offered = append(offered, about(s.Server, s.State, s.Address))
	}
	return offered
}

// offerApplications are the models, and their instances.
func offerApplications(ctx context.Context, a *app, q asked) []string {
	return valuesOf(api.AppList, func(asked) api.AppListRequest { return api.AppListRequest{} }, func(p api.App) string {
		return about(p.Name, p.Environment, p.Description)
	})(ctx, a, q)
}

func offerJobs(ctx context.Context, a *app, q asked) []string {
	return valuesOf(api.JobList, func(asked) api.JobListRequest { return api.JobListRequest{Limit: 50} },
		func(j api.Job) string { return about(j.ID, jobText(j), j.State) })(ctx, a, q)
}

func offerTasks(ctx context.Context, a *app, q asked) []string {
	environment, _ := q.cmd.Flags().GetString("environment")
	return valuesOf(api.TaskList, func(asked) api.EnvironmentRequest { return api.EnvironmentRequest{Environment: environment} },
		func(t api.Task) string { return about(t.Name, taskSummary(t)) })(ctx, a, q)
}

// offerGenerations are those of the node that the command line names first.
func offerGenerations(ctx context.Context, a *app, q asked) (numbers []string) {
	nodes := q.cmd.Flags().Args()
	if len(nodes) == 0 {
		return nil
	}
	delivery, err := ask(ctx, a, api.NodeDelivery, api.NameRequest{Name: nodes[0]})
	if err != nil {
		return nil
	}
	for _, g := range delivery.Generations {
		numbers = append(numbers, about(fmt.Sprint(g.Number), g.Environment, "version "+short(g.Version), g.At.Local().Format(time.DateTime)))
	}
	return numbers
}

// offerContexts asks no server.
func offerContexts(_ context.Context, a *app, _ asked) (names []string) {
	all, err := a.readContexts()
	if err != nil {
		return nil
	}
	for _, c := range all.Contexts {
		names = append(names, about(c.Name, c.Server))
	}
	return names
}

// maxPaths is how many paths of facts are looked through.
const maxPaths = 5000

// offerResourceTypes are those of newest catalogs.
func offerResourceTypes(ctx context.Context, a *app, q asked) []string {
	kind := column("type")
	query := &pql.Query{Entity: "resources", Columns: []pql.Column{kind}, GroupBy: []pql.Column{kind}, OrderBy: []pql.Order{{Field: kind}}}
	return a.rowsOf(ctx, query, "type", func(value json.RawMessage) (text string) {
		_ = json.Unmarshal(value, &text)
		if q.begun != "" && strings.ToLower(q.begun[:1]) == q.begun[:1] { // types may be written small
			return strings.ToLower(text)
		}
		return text
	})
}

// offerFactPaths are the paths of facts, as queries name them.
func offerFactPaths(ctx context.Context, a *app, _ asked) []string {
	query := &pql.Query{Entity: "fact_paths", Columns: []pql.Column{column("path")}, OrderBy: []pql.Order{{Field: column("path")}}}
	return a.rowsOf(ctx, query, "path", func(value json.RawMessage) string {
		var steps []any
		decoder := json.NewDecoder(strings.NewReader(string(value)))
		decoder.UseNumber()
		if decoder.Decode(&steps) != nil {
			return ""
		}
		for i, step := range steps {
			if number, ok := step.(json.Number); ok {
				steps[i], _ = number.Int64()
			}
		}
		return facts.PathText(steps...)
	})
}

// rowsOf asks a query and takes one column of what comes.
func (a *app) rowsOf(ctx context.Context, q *pql.Query, name string, text func(json.RawMessage) string) (values []string) {
	client, err := a.client()
	if err != nil {
		return nil
	}
	err = client.Rows(ctx, api.QueryRequest{Query: q.String()}, func(api.QueryAnswer) error { return nil }, func(row json.RawMessage) error {
		var columns map[string]json.RawMessage
		if err := json.Unmarshal(row, &columns); err != nil {
			return err
		}
		if value := text(columns[name]); value != "" && len(values) < maxPaths {
			values = append(values, value)
		}
		return nil
	})
	if err != nil {
		return nil
	}
	return values
}
