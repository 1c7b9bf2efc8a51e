package server

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/checkin"
	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/compiler/ruby"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/server/settings"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// newVerifier wires what compares catalogs with those of plain Puppet.
func (p *parts) newVerifier(c settings.Config, limits ruby.Config) *compile.Verifier {
	plain := p.ruby.NewPlain(limits, func(ctx context.Context, env fleet.Environment, version fleet.Digest) ([]string, error) {
		tree, err := p.library.Tree(ctx, env, version)
		if err != nil {
			return nil, err
		}
		return tree.Manifest().ModulePath, nil
	})
	return compile.NewVerifier(compile.VerifierParts{
		Plain:   plain,
		Store:   p.store.Verifications,
		History: p.store.Queue,
		Reuser:  p.reuser,
		Gate:    loadGate{most: c.MaxLoad, idle: c.IdleLoad},
		Log:     p.log.Logger,
		Share: func() float64 {
			share, _ := p.config.Load().VerifiedShare() // Check has looked at it
			return share
		},
		AfterDeploy: func() int { return p.config.Load().VerifyAfterDeploy },
		Alarm:       p.catalogAlarm,
	}, compile.DefaultVerifier())
}

// catalogAlarm tells those who follow events of a catalog that is not what plain Puppet gives. What differs is shown to who may
// read the catalog only.
func (p *parts) catalogAlarm(ctx context.Context, v compile.Verification) {
	err := p.events.Alarm(ctx, v.Node, fmt.Sprintf("verification-%d", v.ID), pxp.RunEvent{
		Environment: string(v.Environment), Version: string(v.Version),
		Message: fmt.Sprintf("the catalog of version %s is not what plain Puppet gives, in %s: no catalog of it is used again; "+
			"see `tutti compile verifications --node %s`",
			v.Version.Short(), fault.Count(v.Count, "place"), v.Node),
	})
	if err != nil && ctx.Err() == nil {
		p.log.ErrorContext(ctx, "the alarm about a catalog is in no event", "node", v.Node, "err", err)
	}
}

// verifications is rest.Verifying.
type verifications struct {
	nodes    inventory.NodeStore
	places   checkin.Environments
	library  *code.Library
	versions code.Store
	verifier *compile.Verifier
	rows     compile.Verifications
}

// verifications makes it.
func (p *parts) verifications() verifications {
	return verifications{
		nodes:    p.store.Nodes,
		places:   p.places,
		library:  p.library,
		versions: p.store.Versions,
		verifier: p.verifier,
		rows:     p.store.Verifications,
	}
}

// Verify finds out which environment and version are meant.
func (d verifications) Verify(ctx context.Context, name fleet.Certname, version string) (compile.Verification, error) {
	node, err := d.nodes.Node(ctx, name)
	if err != nil {
		return compile.Verification{}, err
	}
	place, err := d.places.Of(ctx, name, node.Environment)
	if err != nil {
		return compile.Verification{}, err
	}
	id, err := d.version(ctx, place.Environment, version)
	if err != nil {
		return compile.Verification{}, err
	}
	return d.verifier.Verify(ctx, name, place.Environment, id)
}

// maxPrefixes is how many versions are looked through for one that begins so.
const maxPrefixes = 1000

func (d verifications) version(ctx context.Context, env fleet.Environment, text string) (fleet.Digest, error) {
	if text == "" {
		version, err := d.library.Refresh(ctx, env)
		return version.ID, err
	}
	versions, err := d.versions.Versions(ctx, env, maxPrefixes)
	if err != nil {
		return "", err
	}
	return code.Named(env, versions, text)
}

// Sample implements rest.Verifying.
func (d verifications) Sample(ctx context.Context, env fleet.Environment, n int) ([]fleet.Certname, error) {
	return d.verifier.Sample(ctx, env, n)
}

// Verifications implements rest.Verifying.
func (d verifications) Verifications(ctx context.Context, f compile.VerificationFilter) ([]compile.Verification, error) {
	return d.rows.Verifications(ctx, f)
}

// maxWrong is how many nodes code status names whose catalogs differ.
const maxWrong = 5

// verified adds to a version's status how its catalogs stand to plain Puppet.
func (d deployments) verified(ctx context.Context, env fleet.Environment, version fleet.Digest, s *compile.CodeStatus) (err error) {
	if s.Verified, err = d.verifications.CountVerifications(ctx, env, version); err != nil || s.Verified[compile.Differs] == 0 {
		return err
	}
	rows, err := d.verifications.Verifications(ctx, compile.VerificationFilter{
		Environment: env,
		Version:     version,
		Outcome:     compile.Differs,
		Limit:       maxWrong,
	})
	for _, v := range rows {
		s.Wrong = append(s.Wrong, v.Node)
	}
	return err
}

// keepVerifications is how long it is known what was verified.
const keepVerifications = 30 * 24 * time.Hour

// verifyFigures registers what was verified.
func (m *metrics) verifyFigures(verifier *compile.Verifier) {
	for outcome, help := range map[compile.VerifyOutcome]string{
		compile.Same:          "Catalogs that are what plain Puppet gives.",
		compile.Differs:       "Catalogs that are not what plain Puppet gives. Each is an alarm: see the log and `tutti compile verifications`.",
		compile.NotComparable: "Catalogs that could not be compared with plain Puppet's: volatile code, changed inputs.",
		compile.NotVerified:   "Catalogs for which plain Puppet could not be run to its end.",
	} {
		name := "tutti_verify_" + strings.ReplaceAll(string(outcome), "-", "_") + "_total"
		m.counter(name, help, func() float64 { return float64(verifier.Stats().Outcomes[outcome]) })
	}
	m.counter("tutti_verify_dropped_total", "Samples that were not verified: there was no room, or no time.",
		func() float64 { return float64(verifier.Stats().Dropped) })
	m.gauge("tutti_verify_waiting", "Samples that wait for plain Puppet.", func() float64 { return float64(verifier.Stats().Waiting) })
}
