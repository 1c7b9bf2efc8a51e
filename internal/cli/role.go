package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fleet"
)

var roleCommand = asking{noun{
	use: "role", short: "Decide what roles allow",
	verbs: []declared{roleList, roleShow, roleCreate, roleEdit, roleDelete},
}}

const grantHelp = `A grant is a permission, and what it is good for: PERMISSION [environments=A,B] [tasks=A,B] [actions=MODULE.ACTION,…] [nodes=CONDITION]. In names, * stands
for any characters. CONDITION is PQL on the inventory and comes last. Without them the grant is good for everything.`

// parseGrant reads a grant from the command line.
func parseGrant(text string) (fleet.Grant, error) {
	permission, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	grant := fleet.Grant{Permission: fleet.Permission(permission)}
	for rest = strings.TrimSpace(rest); rest != ""; rest = strings.TrimSpace(rest) {
		if condition, ok := strings.CutPrefix(rest, "nodes="); ok {
			grant.Nodes = strings.TrimSpace(condition)
			break
		}
		var scope string
		scope, rest, _ = strings.Cut(rest, " ")
		key, names, _ := strings.Cut(scope, "=")
		if names == "" {
			return grant,
				usageError{fmt.Errorf("--grant %q: %q is no scope; write environments=A,B or tasks=A,B or actions=M.A,M.B or, at the end, nodes=CONDITION", text, scope)}
		}
		switch key {
		case "environments":
			grant.Environments = strings.Split(names, ",")
		case "tasks":
			grant.Tasks = strings.Split(names, ",")
		case "actions":
			grant.Actions = strings.Split(names, ",")
		default:
			return grant, usageError{fmt.Errorf("--grant %q: there is no scope %q; there are environments, tasks, actions and nodes", text, key)}
		}
	}
	return grant, nil
}

func parseGrants(texts []string) (grants []fleet.Grant, err error) {
	for _, text := range texts {
		grant, err := parseGrant(text)
		if err != nil {
			return nil, err
		}
		grants = append(grants, grant)
	}
	return grants, nil
}

// grantText is the inverse of parseGrant.
func grantText(g fleet.Grant) string {
	text := string(g.Permission)
	if len(g.Environments) > 0 {
		text += " environments=" + strings.Join(g.Environments, ",")
	}
	if len(g.Tasks) > 0 {
		text += " tasks=" + strings.Join(g.Tasks, ",")
	}
	if len(g.Actions) > 0 {
		text += " actions=" + strings.Join(g.Actions, ",")
	}
	if g.Nodes != "" {
		text += " nodes=" + g.Nodes
	}
	return text
}

var roleList = verb[api.Nothing]{
	use: "list", short: "List roles", example: "  tutti role list",
	prints: aList,
	run: lists(api.RoleList, func(*api.Nothing) print.Table[api.Role] {
		return print.Table[api.Role]{
			Columns: []string{"role", "made by", "grants", "description"},
			Row: func(r api.Role) []any {
				maker := r.ChangedBy
				if r.BuiltIn {
					maker = "(built in)"
				}
				return []any{r.Name, maker, len(r.Grants), r.Description}
			},
			Name: func(r api.Role) string { return r.Name },
		}
	}),
}

var roleShow = verb[api.RoleRequest]{
	use: "show ROLE", short: "Show what a role allows", example: "  tutti role show operator",
	into: func(in *api.RoleRequest, args []string) { in.Role = args[0] },
	run:  shows(api.RoleShow, printRole),
}

func printRole(to print.Printer, r api.Role) error {
	rows := [][]string{{"Role", r.Name}, {"Description", r.Description}}
	if !r.BuiltIn {
		rows = append(rows, []string{"Changed", print.AgoOf(r.ChangedAt, time.Now()) + by(r.ChangedBy)})
	}
	for _, grant := range r.Grants {
		rows = append(rows, []string{"May", grantText(grant)})
	}
	return to.Rows(nil, rows)
}

type roleCreateInput struct {
	description string
	texts       []string
}

var roleCreate = verb[roleCreateInput]{
	use: "create ROLE", short: "Create a role",
	long:    "Create a role.\n\n" + grantHelp,
	example: "  tutti role create web-team --grant 'code:deploy environments=web_*' --grant 'node:read nodes=facts.role = \"web\"'",
	flags: func(f flagSet, in *roleCreateInput) {
		f.StringVar(&in.description, "description", "", "what it is for")
		f.StringArrayVar(&in.texts, "grant", nil, "what it allows; may be given many times")
	},
	run: func(ctx context.Context, c *call, in *roleCreateInput) error {
		grants, err := parseGrants(in.texts)
		if err != nil {
			return err
		}
		return showAnswer(ctx, c.app, api.RoleCreate, api.RoleCreateRequest{Name: c.args[0], Description: in.description, Grants: grants}, printRole)
	},
}

type roleEditInput struct {
	description string
	texts       []string
}

var roleEdit = verb[roleEditInput]{
	use: "edit ROLE", short: "Change what a role allows",
	long:    "Change a role. If grants are given, they replace those that it has.\n\n" + grantHelp,
	example: "  tutti role edit web-team --grant 'code:deploy environments=web_*,test'",
	flags: func(f flagSet, in *roleEditInput) {
		f.StringVar(&in.description, "description", "", "what it is for")
		f.StringArrayVar(&in.texts, "grant", nil, "what it allows, instead of what it did; may be given many times")
		f.requiresOne("description", "grant")
	},
	run: func(ctx context.Context, c *call, in *roleEditInput) error {
		role, err := ask(ctx, c.app, api.RoleShow, api.RoleRequest{Role: c.args[0]})
		if err != nil {
			return err
		}
		request := api.RoleEditRequest{Role: role.Name, Description: role.Description, Grants: role.Grants}
		if c.changed("description") {
			request.Description = in.description
		}
		if len(in.texts) > 0 {
			if request.Grants, err = parseGrants(in.texts); err != nil {
				return err
			}
		}
		if role, err = ask(ctx, c.app, api.RoleEdit, request); err != nil {
			return err
		}
		return print.One(c.printer(), role, printRole)
	},
}

var roleDelete = verb[api.RoleRequest]{
	use: "delete ROLE", short: "Delete a role that nobody has", example: "  tutti role delete web-team",
	destroys: lossOfRole,
	into:     func(in *api.RoleRequest, args []string) { in.Role = args[0] },
	run:      does(api.RoleDelete, func(in *api.RoleRequest) string { return fmt.Sprintf("Role %s is deleted", in.Role) }),
}
