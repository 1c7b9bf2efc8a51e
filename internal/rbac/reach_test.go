package rbac_test

import (
	"testing"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/pql"
	"github.com/tutti-project/tutti/internal/rbac"
)

func TestReach(t *testing.T) {
	t.Parallel()
	const none, web = `certname = ""`, `facts.role = "web"`
	read := func(g fleet.Grant) fleet.Grant { g.Permission = fleet.NodeRead; return g }
	preview := fleet.Grant{Permission: fleet.PreviewCreate}
	for name, c := range map[string]struct {
		actor fleet.Actor
		want  string
	}{
		"no grant":           {fleet.Actor{Grants: []fleet.Grant{preview}}, none},
		"everything":         {fleet.Actor{Grants: []fleet.Grant{{Permission: fleet.Everything}}}, ""},
		"all nodes":          {fleet.Actor{Grants: []fleet.Grant{preview, read(fleet.Grant{})}}, ""},
		"all queries":        {fleet.Actor{Grants: []fleet.Grant{{Permission: fleet.QueryRun}}}, ""},
		"some queries":       {fleet.Actor{Grants: []fleet.Grant{{Permission: fleet.QueryRun, Environments: []string{"web"}}}}, none},
		"some nodes":         {fleet.Actor{Grants: []fleet.Grant{preview, read(fleet.Grant{Nodes: web})}}, `((facts.role = "web"))`},
		"tasks are no nodes": {fleet.Actor{Grants: []fleet.Grant{read(fleet.Grant{Tasks: []string{"x"}})}}, none},
		"environments": {
			fleet.Actor{Grants: []fleet.Grant{read(fleet.Grant{Environments: []string{"web_*", "db"}, Nodes: web}), read(fleet.Grant{Environments: []string{"a"}})}},
			`(environment ~ "^(a)$") or (environment ~ "^(web_.*|db)$" and (facts.role = "web"))`,
		},
		"narrowed": {
			fleet.Actor{Grants: []fleet.Grant{read(fleet.Grant{})}, Narrowed: true, Within: []fleet.Grant{read(fleet.Grant{Nodes: web})}}, `((facts.role = "web"))`,
		},
		"narrowed to none":   {fleet.Actor{Grants: []fleet.Grant{read(fleet.Grant{})}, Narrowed: true, Within: []fleet.Grant{preview}}, none},
		"narrowed elsewhere": {fleet.Actor{Grants: []fleet.Grant{{Permission: fleet.QueryRun}}, Narrowed: true, Within: []fleet.Grant{read(fleet.Grant{})}}, none},
		"narrowed both": {
			fleet.Actor{Grants: []fleet.Grant{read(fleet.Grant{Environments: []string{"a"}})}, Narrowed: true, Within: []fleet.Grant{read(fleet.Grant{Nodes: web})}},
			`((environment ~ "^(a)$")) and (((facts.role = "web")))`,
		},
	} {
		c.actor.Kind = fleet.UserActor
		got := rbac.Reach(c.actor)
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		if got == "" {
			continue
		}
		if _, err := pql.NodeCondition(got); err != nil {
			t.Errorf("%s: %s: %v", name, got, err)
		}
	}
}
