package puppetdb

import (
	"context"
	"net/http"
	"net/url"
	"strings"
)

// metricsPrefix is where the figures are, in the shapes of Jolokia.
const metricsPrefix = "/metrics/v2/"

const (
	populationDomain = "puppetlabs.puppetdb.population"
	commandDomain    = "puppetlabs.puppetdb.mq"
)

// commandMeters are what is counted of commands. There is no queue, so none waits.
func (h *Handler) commandMeters() map[string]map[string]any {
	meter := func(n int64) map[string]any {
		rate := 0.0
		if up := h.Now().Sub(h.started).Seconds(); up > 0 {
			rate = float64(n) / up
		}
		return map[string]any{"Count": n, "MeanRate": rate, "RateUnit": "events/second"}
	}
	return map[string]map[string]any{
		"global.depth": {"Count": 0}, "global.seen": meter(h.Counts.received.Load()), "global.processed": meter(h.Counts.processed.Load()),
		"global.fatal": meter(h.Counts.failed.Load()), "global.discarded": meter(0), "global.retried": meter(0),
	}
}

// beans is every figure: domain, name, attributes.
func (h *Handler) beans(ctx context.Context) (map[string]map[string]map[string]any, error) {
	count, err := h.populated(ctx)
	if err != nil {
		return nil, err
	}
	nodes := map[string]map[string]any{}
	for name, n := range count {
		nodes[name] = map[string]any{"Value": n}
	}
	return map[string]map[string]map[string]any{populationDomain: nodes, commandDomain: h.commandMeters()}, nil
}

func (h *Handler) metrics(w http.ResponseWriter, r *http.Request, rest string) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		return refused{http.StatusMethodNotAllowed, "figures are read with GET"}
	}
	what, path, _ := strings.Cut(rest, "/")
	request := map[string]any{"type": what}
	var value any
	switch what {
	case "", "version":
		request["type"] = "version"
		value = map[string]any{"agent": Version, "protocol": "7.2", "info": map[string]any{"product": "tutti"}}
	case "list":
		beans, err := h.beans(r.Context())
		if err != nil {
			return err
		}
		value = listed(beans)
	case "read":
		return h.readMetric(w, r, path, request)
	default:
		return missing{"path", metricsPrefix + rest}
	}
	h.jolokia(w, request, map[string]any{"value": value, "status": http.StatusOK})
	return nil
}

// readMetric answers read/BEAN and read/BEAN/ATTRIBUTE.
func (h *Handler) readMetric(w http.ResponseWriter, r *http.Request, path string, request map[string]any) error {
	bean, attribute, one := strings.Cut(path, "/")
	if text, err := url.PathUnescape(bean); err == nil {
		bean = text
	}
	request["mbean"] = bean
	if one {
		request["attribute"] = attribute
	}
	domain, name, _ := strings.Cut(bean, ":name=")
	beans, err := h.beans(r.Context())
	if err != nil {
		return err
	}
	found, ok := beans[domain][name]
	if !ok {
		h.notThere(w, request, "InstanceNotFoundException", bean)
		return nil
	}
	var value any = found
	if one {
		if value, ok = found[attribute]; !ok {
			h.notThere(w, request, "AttributeNotFoundException", attribute)
			return nil
		}
	}
	h.jolokia(w, request, map[string]any{"value": value, "status": http.StatusOK})
	return nil
}

// notThere says so as Jolokia does: in the body of an answer that is fine.
func (h *Handler) notThere(w http.ResponseWriter, request map[string]any, kind, what string) {
	kind = "javax.management." + kind
	h.jolokia(w, request, map[string]any{"error_type": kind, "error": kind + " : " + clip(what), "status": http.StatusNotFound})
}

func (h *Handler) jolokia(w http.ResponseWriter, request, answer map[string]any) {
	answer["request"] = request
	if answer["status"] == http.StatusOK {
		answer["timestamp"] = h.Now().Unix()
	}
	writeJSON(w, http.StatusOK, answer)
}

// listed describes the figures.
func listed(beans map[string]map[string]map[string]any) map[string]any {
	domains := map[string]any{}
	for domain, names := range beans {
		list := map[string]any{}
		for name, attributes := range names {
			described := map[string]any{}
			for attribute := range attributes {
				described[attribute] = map[string]any{"rw": false, "type": "java.lang.Object", "desc": attribute}
			}
			list["name="+name] = map[string]any{"attr": described, "desc": name}
		}
		domains[domain] = list
	}
	return domains
}
