package ruby

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fleet"
)

func TestRubyCode(t *testing.T) {
	t.Parallel()
	needPuppet(t)
	output, err := exec.CommandContext(t.Context(), "ruby", "-w", "-W:no-deprecated", "zygote_test/all.rb").CombinedOutput()
	if err != nil {
		t.Errorf("ruby zygote_test/all.rb: %v\n%s", err, output)
	}
}

func FuzzReadReply(f *testing.F) {
	f.Add([]byte(`{"v":1,"catalog_bytes":2,"exported_bytes":2,"logs":[]}` + "\n{}[]"))
	f.Add([]byte(`{"v":1,"error":{"cause":"code","message":"x"}}` + "\n"))
	f.Add([]byte(`{"v":2}` + "\n"))
	f.Add([]byte(`{"v":1,"catalog_bytes":-1}` + "\n"))
	f.Fuzz(func(t *testing.T, input []byte) {
		reader := bufio.NewReader(bytes.NewReader(input))
		reply, err := readReply[workerReply](reader)
		if err != nil {
			return
		}
		document, err := readDocument(reader, reply.CatalogBytes, 1<<20)
		if err == nil && int64(len(document)) != reply.CatalogBytes {
			t.Errorf("read %d bytes of %d", len(document), reply.CatalogBytes)
		}
	})
}

func FuzzCheckOrder(f *testing.F) {
	f.Add("n.example.org", []byte(`{"a":1}`), []byte(`null`))
	f.Add("../x", []byte(`{`), []byte(`[]`))
	f.Add("n", []byte("{}\n{}"), []byte{})
	f.Fuzz(func(t *testing.T, node string, facts, classes []byte) {
		o := compile.Order{
			Node: fleet.Certname(node), Environment: "production", Version: version("x"), Facts: facts, Classes: classes,
		}
		if err := checkOrder(o, 1<<20); err == nil {
			line, err := json.Marshal(toWire(o))
			if err != nil || bytes.ContainsRune(line, '\n') {
				t.Errorf("an accepted order makes the line %q, %v", line, err)
			}
		} else if !utf8.ValidString(err.Message) || strings.Contains(err.Message, "\n") {
			t.Errorf("message %q", err.Message)
		}
	})
}
