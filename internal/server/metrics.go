package server

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics is what /metrics shows. Durations are seconds, sizes bytes.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.HistogramVec

	mu   sync.RWMutex
	seen map[outcome]prometheus.Observer // those of requests: finding them by their labels takes long
}

// outcome is how a request ended. There are few: routes are those of the server,
// and statuses those that its handlers give.
type outcome struct {
	route  string
	status int
}

func newMetrics() *metrics {
	m := &metrics{
		seen:     map[outcome]prometheus.Observer{},
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "tutti_http_request_seconds", Help: "Time from a request's header to the end of its answer.",
			Buckets: []float64{.001, .005, .02, .1, .5, 2, 10, 60},
		}, []string{"route", "status"}),
	}
	m.registry.MustRegister(m.requests, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *metrics) request(route string, status int, took time.Duration) {
	m.observer(outcome{route, status}).Observe(took.Seconds())
}

func (m *metrics) observer(o outcome) prometheus.Observer {
	m.mu.RLock()
	found, ok := m.seen[o]
	m.mu.RUnlock()
	if ok {
		return found
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	found = m.requests.WithLabelValues(o.route, strconv.Itoa(o.status))
	m.seen[o] = found
	return found
}

// gauge registers a figure that is asked for when the metrics are read.
func (m *metrics) gauge(name, help string, read func() float64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, read))
}

// counter is gauge for a figure that only grows.
func (m *metrics) counter(name, help string, read func() float64) {
	m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, read))
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}
