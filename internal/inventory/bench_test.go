package inventory

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkParseReport reads a report of 100 resources, 73 KB.
func BenchmarkParseReport(b *testing.B) {
	_, status, _ := strings.Cut(strings.ReplaceAll(reportBody, "\n", ""), `"User[u]":`)
	status = strings.TrimSuffix(status, "}}")
	status = strings.Replace(status,
		"{", `{"file":"/etc/puppetlabs/code/environments/production/modules/service/manifests/config.pp","line":40,"resource":"User[u]","provider_used":"useradd",`+
			`"containment_path":["Stage[main]","Service::Config","Service::Instance[one]","User[u]"],"evaluation_time":0.000512342,`+
			`"tags":["user","service::config","service","config","class","service::instance","instance","node","default"],"failed":false,"failed_to_restart":false,`+
			`"changed":false,"out_of_sync":false,"skipped":false,"change_count":0,"out_of_sync_count":0,"events":[],"corrective_change":false,`, 1)
	var body strings.Builder
	body.WriteString(strings.TrimSuffix(strings.ReplaceAll(reportBody, "\n", ""), "}}"))
	for i := range 100 {
		fmt.Fprintf(&body, `,"User[u%d]":%s`, i, status)
	}
	body.WriteString("}}")
	text := []byte(body.String())
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseReport(text); err != nil {
			b.Fatal(err)
		}
	}
}
