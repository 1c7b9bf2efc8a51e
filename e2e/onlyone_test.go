package e2e_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	itsFiles   = "it is about the files of one server: its database, its data directory, its backups"
	itsOwn     = "it starts its servers itself, by a command of its own"
	itsProcess = "it is about the processes of one server"
	severalNow = "it is about several servers, or what they share, already: it is the same without this mode"
	itMoves    = "it moves what one server has in SQLite and its directory, which several cannot have"
	itsChaos   = "faults of several servers are a suite of their own"
)

// aboutOneServer are the stories that are not told with three servers in the place of one, and why.
var aboutOneServer = map[string]string{
	"TestABackupBringsAServerBack":            itsFiles,
	"TestTheCommandsOfTheBackupPage":          itsFiles,
	"TestTheCommandsOfTheDisasterPage":        itsFiles,
	"TestKilledBackupsAndRestores":            itsFiles,
	"TestALostDatabaseForgetsNobody":          itsFiles,
	"TestExchangedDatabasesAreRefused":        itsFiles,
	"TestAServerMovesThereAndBack":            itMoves,
	"TestKilledMoves":                         itMoves,
	"TestContentThatStayedIsNamed":            itMoves,
	"TestSecondServerOnSameData":              itsFiles,
	"TestReadOnlyDataDirectory":               itsFiles,
	"TestFullDisk":                            itsFiles,
	"TestStartOnAFullDisk":                    itsFiles,
	"TestTheAgentFailsOverAndReturns":         itsFiles,
	"TestDemo":                                itsOwn,
	"TestTheTutorial":                         itsOwn,
	"TestTheServiceStartsTheServer":           itsOwn,
	"TestOpenVoxIsFoundWhereItsPackagesPutIt": itsOwn,
	"TestHalfAPackageIsNoEngine":              itsOwn,
	"TestAttacksOfAPreview":                   itsProcess,
	"TestContentInAnS3Store":                  severalNow,
	"TestPostgreSQL":                          severalNow,
	"TestALostPostgreSQLIsSaidAndComesBack":   severalNow,
	"TestASiteGoesOnWithoutTheDatabase":       severalNow,
	"TestTwoServersShareTheWork":              severalNow,
	"TestAServerThatOnlyCompiles":             severalNow,
	"TestRollingRestartBehindALoadBalancer":   severalNow,
	"TestRollingUpgrade":                      severalNow,
	"TestChaos":                               itsChaos,
	"TestChaosOfCatalogs":                     itsChaos,
}

// storyNames are the stories that there are, also those with a build tag.
func storyNames(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`).FindAllStringSubmatch(string(text), -1) {
			there[found[1]] = true
		}
	}
	scripts, err := filepath.Glob("testdata/stories/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, script := range scripts {
		there["TestStories/"+strings.TrimSuffix(filepath.Base(script), ".txtar")] = true
	}
	return there
}

// What is left out is there to be left out.
func TestStoriesThatAreLeftOutAreThere(t *testing.T) {
	t.Parallel()
	there := storyNames(t)
	for name := range aboutOneServer {
		if !there[name] {
			t.Errorf("%s is left out with three servers, and there is no such story", name)
		}
	}
	out := regexp.MustCompile(exactly(slices.Collect(maps.Keys(aboutOneServer))))
	for name := range there {
		if _, named := aboutOneServer[name]; !strings.Contains(name, "/") && out.MatchString(name) != named {
			t.Errorf("the pattern of what is left out matches %s: %t", name, !named)
		}
	}
	same(t, "the pattern of a test and a subtest", `^TestA$|^TestStories$/^b\.c$`, exactly([]string{"TestA", "TestStories/b.c"}))
	if len(there) < 100 || len(aboutOneServer) > len(there)/3 {
		t.Errorf("%d of %d stories are left out", len(aboutOneServer), len(there))
	}
}
