package agent

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

// pxpNames are pxp-agent's names for settings that there are here, too.
func pxpNames() map[string]string {
	return map[string]string{
		"broker-ws-uri": "broker_uris", "broker-ws-uris": "broker_uris", "primary-uris": "primary_uris", "master-uris": "primary_uris",
		"pcp-version": "pcp_version", "ssl-ca-cert": "ca_file", "ssl-cert": "certificate_file", "ssl-key": "key_file", "ssl-crl": "crl_file",
		"modules-dir": "modules_dir", "modules-config-dir": "modules_config_dir", "loglevel": "log_level", "spool-dir-purge-ttl": "spool_ttl",
		"task-cache-dir-purge-ttl": "cache_ttl", "max-message-size": "max_message_bytes", "ping-interval": "ping_interval", "connection-timeout": "connect_timeout",
	}
}

// pxpIgnored are pxp-agent's settings that mean nothing here.
const pxpIgnored = " primary-uri master-uri broker-ws-proxy master-proxy task-cache-dir spool-dir logfile syslog-facility " +
	"log-pcp-access pcp-access-logfile foreground pidfile association-timeout association-request-ttl pcp-message-ttl allowed-keepalive-timeouts " +
	"task-download-connect-timeout task-download-timeout "

// PXPAgentNames translates the settings of a pxp-agent.conf, which is JSON, into those of this
// agent. Others stay as they are.
func PXPAgentNames(found map[string]any) (map[string]any, error) {
	names, out := pxpNames(), make(map[string]any, len(found))
	for key, value := range found {
		name, known := names[key]
		switch {
		case !known && strings.Contains(pxpIgnored, " "+key+" "):
			continue
		case !known:
			out[key] = value
			continue
		case key == "master-uris" && found["primary-uris"] != nil, key == "broker-ws-uri" && found["broker-ws-uris"] != nil:
			continue
		}
		translated, err := pxpValue(key, value)
		if err != nil {
			return nil, err
		}
		out[name] = translated
	}
	return out, nil
}

func pxpValue(key string, value any) (any, error) {
	text := fmt.Sprint(value)
	switch key {
	case "loglevel":
		switch text {
		case "none", "fatal":
			return "error", nil
		case "warning":
			return "warn", nil
		case "trace":
			return "debug", nil
		}
		return text, nil
	case "spool-dir-purge-ttl", "task-cache-dir-purge-ttl":
		return pxpTime(key, text)
	case "ping-interval", "connection-timeout":
		return text + "s", nil
	case "broker-ws-uri":
		return []any{value}, nil
	}
	return value, nil
}

// pxpTime is a number and one of m, h and d.
func pxpTime(key, text string) (any, error) {
	if len(text) > 0 {
		unit := map[byte]time.Duration{'m': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}[text[len(text)-1]]
		n, err := strconv.Atoi(text[:len(text)-1])
		if unit > 0 && err == nil && n >= 0 && n < 100_000 {
			if n == 0 {
				return "876000h", nil // 0d is never: a century
			}
			return (time.Duration(n) * unit).String(), nil
		}
	}
	return nil, fault.New(fault.Invalid, "%s: %.40q is not a number with m, h or d", key, text)
}
