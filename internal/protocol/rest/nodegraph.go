package rest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/inventory/chart"
)

// drawNode draws what failed on a node and what waited for it, or all of its catalog.
func (h *nodes) drawNode(ctx context.Context, request api.NodeGraphRequest) (api.ResourceGraph, error) {
	if request.Show == "" {
		request.Show = "failed"
	}
	if request.Show != "failed" && request.Show != "catalog" {
		return api.ResourceGraph{}, fault.New(fault.Invalid, "show is %.40q; it is failed or catalog", request.Show)
	}
	name, err := fleet.ParseCertname(request.Name)
	if err != nil {
		return api.ResourceGraph{}, err
	}
	node, err := h.nodes.Node(ctx, name)
	if err != nil {
		return api.ResourceGraph{}, err
	}
	var report inventory.Report
	if node.LatestReport != "" {
		if report, err = h.reports.Report(ctx, string(node.LatestReport)); err != nil {
			return api.ResourceGraph{}, err
		}
	}
	catalog, err := h.catalogs.Catalog(ctx, name)
	if err != nil && fault.Of(err) != fault.NotFound {
		return api.ResourceGraph{}, err
	}
	whole := request.Show == "catalog"
	q := chart.Question{Resources: shownIn(report, catalog, whole), Edges: catalog.Edges, Whole: whole, Near: request.Near}
	if request.Open != "" {
		q.Open = strings.Split(request.Open, ",")
	}
	c := chart.Draw(q)
	if request.Near != "" && len(c.Boxes) == 0 {
		return api.ResourceGraph{}, notPictured(request.Near, name, whole, shownIn(report, catalog, false), shownIn(report, catalog, true))
	}
	g := pictureOf(c)
	g.Node, g.Show = string(name), request.Show
	g.OtherCatalog = report.ID != "" && (err != nil || report.CatalogUUID != "" && catalog.UUID != report.CatalogUUID)
	return g, nil
}

// notPictured says why a resource is not in a picture, and what to ask for instead.
func notPictured(resource string, node fleet.Certname, whole bool, ran, all []chart.Resource) error {
	isIn := func(resources []chart.Resource) bool {
		return slices.ContainsFunc(resources, func(r chart.Resource) bool { return r.Name == resource })
	}
	switch has := isIn(all); {
	case has && whole:
		return fault.New(fault.NotFound, "%.200s is in the catalog of %s, but not in the picture: nothing is in it, waits for it, or has it wait", resource, node)
	case whole && isIn(ran):
		return fault.New(fault.NotFound, "%.200s was in the last run of %s, and is not in its newest catalog", resource, node)
	case has || isIn(ran):
		hint := ""
		if has {
			hint = "--catalog shows the whole catalog"
		}
		return &fault.Error{
			Kind:   fault.NotFound,
			Detail: fmt.Sprintf("%.200s neither failed nor was skipped in the last run of %s: it is not in the picture of what failed", resource, node),
			Hint:   hint,
		}
	}
	names := make([]string, 0, len(ran)+len(all))
	for _, r := range slices.Concat(ran, all) {
		names = append(names, r.Name)
	}
	hint := fault.DidYouMean(resource, names)
	if hint == "" && !strings.HasSuffix(resource, "]") {
		hint = "a resource is named as Service[nginx]"
	}
	return &fault.Error{
		Kind: fault.NotFound, Detail: fmt.Sprintf("the catalog of %s has no resource %.200s", node, resource),
		Hint: cmp.Or(hint, fmt.Sprintf("`tutti catalog show %s` lists what it has", node)),
	}
}

// shownIn is what a picture is made of: the resources of the last run, and of the whole catalog if it is asked for.
func shownIn(report inventory.Report, catalog inventory.Catalog, whole bool) []chart.Resource {
	states := make(map[string]string, len(report.Resources))
	var all []chart.Resource
	for _, r := range report.Resources {
		name := r.Type + "[" + r.Title + "]"
		states[name] = statusOf(r)
		if !whole {
			all = append(all, chart.Resource{Name: name, State: states[name], File: r.File, Line: r.Line})
		}
	}
	if whole {
		for _, r := range catalog.Resources {
			name := r.Type + "[" + r.Title + "]"
			all = append(all, chart.Resource{Name: name, State: states[name], File: r.File, Line: r.Line})
		}
	}
	return all
}

func pictureOf(c chart.Chart) api.ResourceGraph {
	g := api.ResourceGraph{
		Width: c.Width, Height: c.Height, BoxWidth: c.BoxWidth, BoxHeight: c.BoxHeight, Left: c.Left, LinesLeft: c.LinesLeft, Folds: c.Folds, Cycle: c.Cycle,
		Boxes: make([]api.ResourceBox, len(c.Boxes)), Lines: make([]api.ResourceLine, len(c.Lines)),
	}
	for i, b := range c.Boxes {
		g.Boxes[i] = api.ResourceBox{Name: b.Name, State: b.State, Folded: b.Folded, Counts: b.Counts, File: b.File, Line: b.Line, Row: b.Row, X: b.X, Y: b.Y}
	}
	for i, l := range c.Lines {
		points := make([][]int, len(l.Points))
		for k, p := range l.Points {
			points[k] = []int{p.X, p.Y}
		}
		g.Lines[i] = api.ResourceLine{From: l.From, To: l.To, Kinds: l.Kinds, Edges: l.Edges, Back: l.Back, Points: points}
	}
	return g
}
