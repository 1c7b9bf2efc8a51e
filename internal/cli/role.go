package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fleet"
)

func (a *app) roleCommand() *cobra.Command {
	return a.withAccess(noun("role", "Decide what roles allow", a.roleList(), a.roleShow(), a.roleCreate(), a.roleEdit(), a.roleDelete()))
}

const grantHelp = `A grant is a permission, and what it is good for: PERMISSION [environments=A,B] [tasks=A,B] [nodes=CONDITION]. In names, * stands
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
			return grant, usageError{fmt.Errorf("--grant %q: %q is no scope; write environments=A,B or tasks=A,B or, at the end, nodes=CONDITION", text, scope)}
		}
		switch key {
		case "environments":
			grant.Environments = strings.Split(names, ",")
		case "tasks":
			grant.Tasks = strings.Split(names, ",")
		default:
			return grant, usageError{fmt.Errorf("--grant %q: there is no scope %q; there are environments, tasks and nodes", text, key)}
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
	if g.Nodes != "" {
		text += " nodes=" + g.Nodes
	}
	return text
}

func (a *app) roleList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List roles", Args: exactly(0), Example: "  tutti role list",
		RunE: func(cmd *cobra.Command, _ []string) error {
			roles, err := ask(cmd.Context(), a, api.RoleList, api.Nothing{})
			if err != nil {
				return err
			}
			return print.List(a.printer(), roles.Items, print.Table[api.Role]{
				Columns: []string{"role", "made by", "grants", "description"},
				Row: func(r api.Role) []string {
					maker := r.ChangedBy
					if r.BuiltIn {
						maker = "(built in)"
					}
					return []string{r.Name, maker, fmt.Sprint(len(r.Grants)), r.Description}
				},
				Name: func(r api.Role) string { return r.Name },
			})
		},
	}
}

func (a *app) roleShow() *cobra.Command {
	return &cobra.Command{
		Use: "show ROLE", Short: "Show what a role allows", Args: exactly(1), Example: "  tutti role show operator",
		RunE: func(cmd *cobra.Command, args []string) error {
			role, err := ask(cmd.Context(), a, api.RoleShow, api.RoleRequest{Role: args[0]})
			if err != nil {
				return err
			}
			return printRole(a, role)
		},
	}
}

func printRole(a *app, r api.Role) error {
	if a.printer().AsJSON() {
		return a.printer().JSON(r)
	}
	rows := [][]string{{"Role", r.Name}, {"Description", r.Description}}
	if !r.BuiltIn {
		rows = append(rows, []string{"Changed", print.AgoOf(r.ChangedAt, time.Now()) + by(r.ChangedBy)})
	}
	for _, grant := range r.Grants {
		rows = append(rows, []string{"May", grantText(grant)})
	}
	return a.printer().Rows(nil, rows)
}

func (a *app) roleCreate() *cobra.Command {
	var description string
	var texts []string
	cmd := &cobra.Command{
		Use: "create ROLE", Short: "Create a role", Args: exactly(1), Long: "Create a role.\n\n" + grantHelp,
		Example: "  tutti role create web-team --grant 'code:deploy environments=web_*' --grant 'node:read nodes=facts.role = \"web\"'",
		RunE: func(cmd *cobra.Command, args []string) error {
			grants, err := parseGrants(texts)
			if err != nil {
				return err
			}
			role, err := ask(cmd.Context(), a, api.RoleCreate, api.RoleCreateRequest{Name: args[0], Description: description, Grants: grants})
			if err != nil {
				return err
			}
			return printRole(a, role)
		},
	}
	cmd.Flags().StringVar(&description, "description", "", "what it is for")
	cmd.Flags().StringArrayVar(&texts, "grant", nil, "what it allows; may be given many times")
	return cmd
}

func (a *app) roleEdit() *cobra.Command {
	var description string
	var texts []string
	cmd := &cobra.Command{
		Use: "edit ROLE", Short: "Change what a role allows", Args: exactly(1),
		Long:    "Change a role. If grants are given, they replace those that it has.\n\n" + grantHelp,
		Example: "  tutti role edit web-team --grant 'code:deploy environments=web_*,test'",
		RunE: func(cmd *cobra.Command, args []string) error {
			role, err := ask(cmd.Context(), a, api.RoleShow, api.RoleRequest{Role: args[0]})
			if err != nil {
				return err
			}
			request := api.RoleEditRequest{Role: role.Name, Description: role.Description, Grants: role.Grants}
			if cmd.Flags().Changed("description") {
				request.Description = description
			}
			if len(texts) > 0 {
				if request.Grants, err = parseGrants(texts); err != nil {
					return err
				}
			}
			if role, err = ask(cmd.Context(), a, api.RoleEdit, request); err != nil {
				return err
			}
			return printRole(a, role)
		},
	}
	cmd.Flags().StringVar(&description, "description", "", "what it is for")
	cmd.Flags().StringArrayVar(&texts, "grant", nil, "what it allows, instead of what it did; may be given many times")
	cmd.MarkFlagsOneRequired("description", "grant")
	return cmd
}

func (a *app) roleDelete() *cobra.Command {
	return &cobra.Command{
		Use: "delete ROLE", Short: "Delete a role that nobody has", Args: exactly(1), Example: "  tutti role delete web-team",
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := a.client()
			if err != nil {
				return err
			}
			if _, err := api.RoleDelete.Call(cmd.Context(), client, api.RoleRequest{Role: args[0]}); err != nil {
				return err
			}
			a.hint("Role %s is deleted", args[0])
			return nil
		},
	}
}
