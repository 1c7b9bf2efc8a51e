package server

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Reasons are told by name, in few words, and what begins with the same words counts once.
func TestFiguresOfTroubles(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", shownTroubleText)
	to := make(chan prometheus.Metric, 9)
	collectTroubles(to, []compile.Trouble{{Text: "the disk is full", Rows: 2}, {Text: long + "1", Rows: 3}, {Text: long + "2", Rows: 4}})
	close(to)
	got := map[string]float64{}
	for m := range to {
		var shown dto.Metric
		if err := m.Write(&shown); err != nil {
			t.Fatal(err)
		}
		got[shown.GetLabel()[0].GetValue()] = shown.GetGauge().GetValue()
	}
	if diff := cmp.Diff(map[string]float64{"the disk is full": 2, strings.Repeat("é", shownTroubleText/2): 7}, got); diff != "" {
		t.Errorf("figures (-want +got):\n%s", diff)
	}
}

// TestQueueFiguresAreBounded: however many environments there are, few have figures.
func TestQueueFiguresAreBounded(t *testing.T) {
	t.Parallel()
	now := time.Now()
	counts := []compile.Count{
		{Priority: compile.Waited, Environment: "big", Wanted: 1, Oldest: now.Add(-time.Minute)},
		{Priority: compile.NewCode, Environment: "big", Wanted: 99, Running: 2, Resting: 1, Oldest: now.Add(-time.Hour)},
		{Priority: compile.NewCode, Environment: "idle", Running: 1},
	}
	for i := range 30 {
		counts = append(counts, compile.Count{
			Priority: compile.Background, Environment: fleet.Environment(fmt.Sprintf("e%02d", i)), Wanted: 1, Oldest: now.Add(-time.Second),
		})
	}
	got := map[string]float64{}
	to := make(chan prometheus.Metric, 1000)
	collectCounts(to, counts, now)
	close(to)
	for m := range to {
		var shown dto.Metric
		if err := m.Write(&shown); err != nil {
			t.Fatal(err)
		}
		label := ""
		if len(shown.GetLabel()) > 0 {
			label = shown.GetLabel()[0].GetName() + "=" + shown.GetLabel()[0].GetValue()
		}
		if m.Desc() != agedFigure {
			got[label] = shown.GetGauge().GetValue()
		} else if label == "environment=big" {
			got["age of big"] = shown.GetGauge().GetValue()
		}
	}
	want := map[string]float64{
		"": 1, "priority=waited": 1, "priority=signed": 0, "priority=new_facts": 0, "priority=new_exports": 0, "priority=new_code": 99, "priority=previewing": 0,
		"priority=background": 30, "environment=big": 100, "age of big": 3600, "environment=(others)": 11,
	}
	for i := range 19 {
		want[fmt.Sprintf("environment=e%02d", i)] = 1
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("figures (-want +got):\n%s", diff)
	}
}
