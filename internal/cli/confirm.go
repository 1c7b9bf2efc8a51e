package cli

import (
	"bufio"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
)

// caution is what the flags of a verb that destroys something say.
type caution struct{ yes, dryRun bool }

func (k *caution) flags(f flagSet) {
	f.BoolVar(&k.yes, "yes", false, "do not ask")
	f.BoolVar(&k.dryRun, "dry-run", false, "say what would be done, and do nothing")
}

// goesOn shows what a verb would do, and asks somebody at a terminal for it. Where nobody can be asked it is done as
// ordered: scripts have to go on. tell says what would be done; it is only asked for when somebody is told. Without a word of it
// nothing would be lost, and nobody is asked.
func (k *caution) goesOn(c *call, tell func() (string, error)) (bool, error) {
	if !k.dryRun && (k.yes || !c.system.canAsk()) {
		return true, nil
	}
	loss, err := tell()
	if err != nil {
		return false, err
	}
	switch {
	case k.dryRun && loss == "":
		return false, c.printer().Linef("This would destroy nothing. Nothing was done.")
	case loss == "":
		return true, nil
	case k.dryRun:
		return false, c.printer().Linef("This would %s. Nothing was done.", loss)
	}
	if err := c.agreed("This will " + loss + ".\nGo on?"); err != nil {
		return false, err
	}
	return true, nil
}

// agreed asks somebody at a terminal, and fails unless the answer is yes.
func (a *app) agreed(question string) error {
	_, _ = fmt.Fprint(a.system.Err, question+" [y/N] ")
	answer, _ := bufio.NewReader(a.system.In).ReadString('\n') // an end of input is no confirmation
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return usageError{fault.New(fault.Invalid, "not confirmed; nothing was done (--yes does not ask)")}
}

// askedAbove is how many nodes a job may have before somebody at a terminal is asked.
const askedAbove = 20

// confirmed asks somebody at a terminal before many nodes are touched; it says whether
// anybody was asked.
func (a *app) confirmed(does string, nodes int, yes bool) (asked bool, err error) {
	if yes || !a.system.canAsk() || nodes <= askedAbove {
		return false, nil
	}
	_, _ = fmt.Fprintf(a.system.Err, "This %s on %s. Type %d to go on: ", does, fault.Count(nodes, "node"), nodes)
	answer, _ := bufio.NewReader(a.system.In).ReadString('\n') // an end of input is no confirmation
	if strings.TrimSpace(answer) != strconv.Itoa(nodes) {
		return true, usageError{fault.New(fault.Invalid, "not confirmed; nothing was started (--yes does not ask)")}
	}
	return true, nil
}

// What the verbs that destroy something would do, in words that follow "this will". Each asks the server, so that a name
// that nothing has is an error before anything is done.

func lossOfNode(ctx context.Context, c *call, in *api.NameRequest) (string, error) {
	node, err := ask(ctx, c.app, api.NodeShow, *in)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("forget the node %s (%s): its facts, its catalog and its reports", node.Name, nodeStatus(node)), nil
}

// lossOfCertificates names each certificate with what it is good for.
func lossOfCertificates(ctx context.Context, c *call, verb string) (string, error) {
	var each []string
	for _, name := range c.args {
		cert, err := ask(ctx, c.app, api.CertificateShow, api.NameRequest{Name: name})
		if err != nil {
			return "", c.nearby(err)
		}
		text := name + " (" + cert.State
		if cert.NotAfter != nil {
			text += ", good until " + dateOf(cert.NotAfter)
		}
		each = append(each, text+")")
	}
	return fmt.Sprintf("%s: %s. Nodes that use it are cut off", verb, strings.Join(each, ", ")), nil
}

func lossOfRequests(ctx context.Context, c *call, from string) (string, error) {
	list, err := ask(ctx, c.app, api.CertificateList, api.CertificateListRequest{State: "requested"})
	if err != nil {
		return "", err
	}
	if from != "" {
		return fmt.Sprintf("drop the waiting certificate requests from %s; %d wait in all", from, len(list.Items)), nil
	}
	return fmt.Sprintf("drop %s that wait", fault.Count(len(list.Items), "certificate request")), nil
}

func lossOfGroup(ctx context.Context, c *call, in *api.GroupDeleteRequest) (string, error) {
	group, err := ask(ctx, c.app, api.GroupShow, api.GroupRequest{Group: in.Group})
	if err != nil {
		return "", err
	}
	nodes, err := some(ctx, c.app, api.GroupNodes, api.GroupNodesRequest{Group: in.Group}, nextGroupNodes, 0)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("delete the group %q: %s lose what it gives them", group.Name, fault.Count(len(nodes), "node")), nil
}

func lossOfEnvironment(ctx context.Context, c *call, in *api.EnvironmentRequest) (string, error) {
	deployed, err := ask(ctx, c.app, api.EnvironmentList, api.Nothing{})
	if err != nil {
		return "", err
	}
	for _, v := range deployed.Items {
		if v.Environment == in.Environment {
			nodes, err := some(ctx, c.app, api.NodeList, api.NodeListRequest{Environment: in.Environment}, nextNodes, 0)
			if err != nil {
				return "", err
			}
			return fmt.Sprintf("remove the environment %s (version %s, deployed %s by %s), in which %s have their last run",
				v.Environment, short(v.ID), print.Ago(v.DeployedAt, time.Now()), v.Actor, fault.Count(len(nodes), "node")), nil
		}
	}
	return "", fault.New(fault.NotFound, "environment %s has no code", in.Environment)
}

func lossOfUser(ctx context.Context, c *call, in *api.UserRequest) (string, error) {
	user, err := ask(ctx, c.app, api.UserShow, *in)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("delete the user %s (roles: %s) with all of its tokens%s", user.Name,
		first(strings.Join(user.Roles, " "), "none"), lockoutText(ctx, c, removal{user: in.User})), nil
}

func lossOfRole(ctx context.Context, c *call, in *api.RoleRequest) (string, error) {
	role, err := ask(ctx, c.app, api.RoleShow, *in)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("delete the role %s with its %s", role.Name, fault.Count(len(role.Grants), "grant")), nil
}

func lossOfPolicy(ctx context.Context, c *call, in *api.PolicyNameRequest) (string, error) {
	policy, err := ask(ctx, c.app, api.PolicyShow, *in)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("remove the policy %s (%s when %s)", policy.Name, effectText(policy.Effect, policy.Role, policy.AuthorMay), policy.When), nil
}

func lossOfFreeze(ctx context.Context, c *call, in *api.FreezeNameRequest) (string, error) {
	freezes, err := ask(ctx, c.app, api.FreezeList, api.Nothing{})
	if err != nil {
		return "", err
	}
	for _, f := range freezes.Items {
		if f.Name == in.Freeze {
			return fmt.Sprintf("remove the freeze %s (%s: %s)", f.Name, freezeText(f), f.Why), nil
		}
	}
	return fmt.Sprintf("remove the freeze %s", in.Freeze), nil // the server says whether there is one
}
