package puppetrun

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// maxReportBytes bounds a report.
const maxReportBytes = 64 << 20

// report is what is read of a run's report. Its Ruby types mean nothing here.
type report struct {
	Time            string    `yaml:"time"`
	TransactionUUID string    `yaml:"transaction_uuid"`
	CatalogUUID     string    `yaml:"catalog_uuid"`
	CodeID          string    `yaml:"code_id"`
	Environment     string    `yaml:"environment"`
	Status          string    `yaml:"status"`
	Resources       yaml.Node `yaml:"resource_statuses"`
	Metrics         struct {
		Resources struct {
			Values [][]yaml.Node `yaml:"values"` // name, label, number
		} `yaml:"resources"`
	} `yaml:"metrics"`
}

func readReport(path string) (report, error) {
	var r report
	f, err := os.Open(path)
	if err != nil {
		return r, err
	}
	defer func() { _ = f.Close() }()
	limited := &io.LimitedReader{R: f, N: maxReportBytes + 1}
	err = yaml.NewDecoder(limited).Decode(&r)
	switch {
	case limited.N <= 0:
		return r, fmt.Errorf("it has more than %d bytes", maxReportBytes)
	case err != nil:
		return r, fmt.Errorf("it is not the YAML of a report: %w", err)
	case r.Status == "" && r.TransactionUUID == "":
		return r, errors.New("it is not a report: it has neither status nor transaction_uuid")
	}
	return r, nil
}

// fill puts what a report says into results.
func (r report) fill(to *pxp.PuppetResults) {
	for text, field := range map[*string]string{&to.Time: r.Time, &to.TransactionUUID: r.TransactionUUID, &to.Environment: r.Environment, &to.Status: r.Status} {
		if field != "" {
			*text = field
		}
	}
	for _, value := range r.Metrics.Resources.Values {
		var name string
		var number float64
		if len(value) == 3 && value[0].Decode(&name) == nil && value[2].Decode(&number) == nil {
			to.Metrics[name] = int(number)
		}
	}
	to.Pending = r.pending()
}

// pending is how many resources noop kept from changing.
func (r report) pending() int {
	var resources map[string]struct {
		Events []struct {
			Status string `yaml:"status"`
		} `yaml:"events"`
	}
	_ = r.Resources.Decode(&resources) // what cannot be read counts for nothing
	pending := 0
	for _, resource := range resources {
		for _, e := range resource.Events {
			if e.Status == "noop" {
				pending++
				break
			}
		}
	}
	return pending
}

// modified is when a file was written; zero when it is not there.
func modified(path string) time.Time {
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}
