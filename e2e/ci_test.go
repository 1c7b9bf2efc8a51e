package e2e_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/tutti-project/tutti/internal/program/programtest"
)

// The page about previews in CI: its script, every command, and the jobs for GitLab and GitHub, run as these servers run them, with a
// token that may nothing else.
func TestPreviewsInCI(t *testing.T) {
	begin(t, 60)
	s := startServer(t, "--autosign", "all", "--compile-patience", "60s", "--max-load", "0")
	page, err := os.ReadFile(filepath.Join(docs, "previews-in-ci.md"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	repo := filepath.Join(dir, "control-repo")
	write(t, filepath.Join(repo, "environment.conf"), "modulepath = modules\n")
	write(t, filepath.Join(repo, "manifests/site.pp"), "if $facts['role'] == 'web' { include web }\n")
	write(t, filepath.Join(repo, "modules/web/manifests/init.pp"), "class web {\n  file { '/srv/httpd.conf': content => epp('web/httpd.epp') }\n}\n")
	template := filepath.Join(repo, "modules/web/templates/httpd.epp")
	write(t, template, "listen = <%= $facts['port'] %>\n")
	versionOf(t, s, repo)
	for name, role := range map[string]string{"web-1.test": "web", "web-2.test": "web", "db-1.test": "db"} {
		if err := s.checkIn(name, map[string]any{"role": role, "port": len(name) + int(name[4])}); err != nil {
			t.Fatal(err)
		}
	}
	write(t, template, "listen = <%= $facts['port'] %>\nlog = info\n")
	write(t, filepath.Join(repo, "ci/preview.sh"), blockOf(t, string(page), "sh", 0))
	s.follows(t, dir, "previews-in-ci.md")

	write(t, filepath.Join(repo, "modules/web/manifests/init.pp"), "class web {\n  file { '/srv/httpd.conf': content => epp('web/httpd.epp') }\n}\n")
	token, err := os.ReadFile(filepath.Join(dir, "ci.token"))
	if err != nil {
		t.Fatal(err)
	}
	run := ciRun{repo: repo, env: append(cleanEnv(), "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"), "HOME="+t.TempDir(),
		"TUTTI_SERVER="+s.url, "TUTTI_CA_FILE="+filepath.Join(s.data, "ca", "ca_crt.pem"), "TUTTI_TOKEN="+strings.TrimSpace(string(token)))}
	run.gitlab(t, blockOf(t, string(page), "yaml", 0))
	run.github(t, blockOf(t, string(page), "yaml", 1))
	for _, description := range []string{"!7", "feature"} {
		if list := s.tutti(t, "preview", "list"); !strings.Contains(list, description) {
			t.Errorf("no preview is called %s:\n%s", description, list)
		}
	}
}

// blockOf is the n-th block of a language on a page.
func blockOf(t *testing.T, page, language string, n int) string {
	t.Helper()
	blocks := regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(page, -1)
	if len(blocks) <= n {
		t.Fatalf("the page has %d blocks of %s", len(blocks), language)
	}
	return blocks[n][1]
}

// ciRun runs jobs as CI servers do.
type ciRun struct {
	repo string
	env  []string
}

// step runs a script, and returns its exit code.
func (r ciRun) step(t *testing.T, script string, env ...string) int {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-e", "-o", "pipefail", "-c", script)
	cmd.Dir, cmd.Env = r.repo, slices.Concat(r.env, env)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatalf("%s: %v", script, err)
	}
	t.Logf("%s\nends with %d\n%s", script, cmd.ProcessState.ExitCode(), out)
	return cmd.ProcessState.ExitCode()
}

// comment is the Markdown that the script left, which is what is to be said below the request.
func (r ciRun) comment(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(r.repo, "preview.md"))
	if err != nil || !strings.HasPrefix(string(text), "**Preview ") {
		t.Errorf("the comment is %q, %v", text, err)
	}
	return string(text)
}

// gitlab runs the job of a .gitlab-ci.yml: what it says reaches GitLab's API, its exit code is one that may be, and what it keeps is there.
func (r ciRun) gitlab(t *testing.T, text string) {
	t.Helper()
	var file struct {
		Preview struct {
			Script       []string
			AllowFailure struct {
				ExitCodes int `yaml:"exit_codes"`
			} `yaml:"allow_failure"`
			Artifacts struct {
				Paths   []string
				Reports struct{ JUnit string }
			}
		}
	}
	if err := yaml.Unmarshal([]byte(text), &file); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var notes []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		notes = append(notes, fmt.Sprintf("%s %s %s\n%s", request.Method, request.URL.Path, request.Header.Get("Private-Token"), request.FormValue("body")))
		w.WriteHeader(http.StatusCreated)
	}))
	defer server.Close()
	job := file.Preview
	code := r.step(t, strings.Join(job.Script, "\n"), "CI_API_V4_URL="+server.URL, "CI_PROJECT_ID=4", "CI_MERGE_REQUEST_IID=7", "COMMENT_TOKEN=secret")
	if code != job.AllowFailure.ExitCodes || code != 3 {
		t.Errorf("the job ends with %d, and %d may be", code, job.AllowFailure.ExitCodes)
	}
	same(t, "notes", []string{"POST /projects/4/merge_requests/7/notes secret\n" + r.comment(t)}, notes)
	for _, path := range append(job.Artifacts.Paths, job.Artifacts.Reports.JUnit) {
		if info, err := os.Stat(filepath.Join(r.repo, path)); err != nil || info.Size() == 0 {
			t.Errorf("the job keeps %q, which is not there: %v", path, err)
		}
	}
}

// github runs the job of a workflow, with gh played by a script.
func (r ciRun) github(t *testing.T, text string) {
	t.Helper()
	var file struct {
		Jobs map[string]struct {
			Env   map[string]string
			Steps []struct{ Run string }
		}
	}
	if err := yaml.Unmarshal([]byte(text), &file); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	programtest.Write(t, filepath.Join(dir, "gh"),
		"#!/bin/sh\nset -e\ntest \"$1 $2 $4\" = 'pr comment --body-file'\n{ echo \"$GH_TOKEN $3\"; cat \"$5\"; } > "+filepath.Join(dir, "said")+"\n")
	env := []string{"PATH=" + dir + ":" + filepath.Dir(binary) + ":" + os.Getenv("PATH"), "GITHUB_STEP_SUMMARY=" + filepath.Join(dir, "summary")}
	job := file.Jobs["preview"]
	for name, value := range job.Env {
		known := map[string]string{"${{ github.ref_name }}": "feature", "${{ github.event.number }}": "8", "${{ github.token }}": "secret"}
		if value, ok := known[value]; ok {
			env = append(env, name+"="+value)
		} else if !strings.HasPrefix(name, "TUTTI_") {
			t.Errorf("%s is %s, which this test does not know", name, value)
		}
	}
	ran := 0
	for _, step := range job.Steps {
		if step.Run == "" {
			continue
		}
		if ran++; r.step(t, step.Run, env...) != 0 {
			t.Errorf("the step fails: %s", step.Run)
		}
	}
	said, _ := os.ReadFile(filepath.Join(dir, "said"))
	summary, _ := os.ReadFile(filepath.Join(dir, "summary"))
	same(t, "comment", "secret 8\n"+r.comment(t), string(said))
	same(t, "summary", r.comment(t), string(summary))
	same(t, "steps that ran", 2, ran)
}
