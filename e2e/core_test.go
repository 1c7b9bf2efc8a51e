package e2e_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var tellLong = flag.Bool("long", false, "tell all stories but the core: make stories")

// coreStories are those of `make test`, which is there to be run after each change: at least one for each way in which people, nodes and
// other programs meet a server, and those that guard its perimeter. `make stories` tells all others; CI tells both (decision 0049).
var coreStories = []string{
	// Nodes: certificates, catalogs, events, orders.
	"TestAgentConverges", "TestJoinToken", "TestRevocationClosesOpenConnections", "TestTheAgentSurvives",
	"TestTasksOfPxpAgent", "TestBuiltInModulesAnswer",
	// Strangers, wrong input, and code that means harm.
	"TestNobodyGetsInUnproven", "TestBadCertificateRequests", "TestWrongCertificatesOverPCP", "TestBadBodies", "TestAttacksOfAPreview/as_root",
	// A server's own life.
	"TestSecondServerOnSameData", "TestReadOnlyDataDirectory", "TestPostgreSQL", "TestExchangedDatabasesAreRefused/sqlite",
	// Code that is compiled, and released.
	"TestStories/held",
	// People.
	"TestExitCodes", "TestListsAsJSON", "TestEveryHelpHasAnExample", "TestStories/access", "TestStories/actions",
	"TestStories/applications", "TestStories/ca", "TestStories/configuration", "TestStories/contexts", "TestStories/differences",
	"TestStories/events", "TestStories/fileget", "TestStories/finding", "TestStories/fleet", "TestStories/groups", "TestStories/jobs",
	"TestStories/query", "TestStories/tasks",
	// Other programs.
	"TestControllersReachAgentsOverPCP", "TestClassifierClients", "TestPypuppetdb", "TestOrchestratorAPI",
	// The stories themselves.
	"TestCoreStoriesAreThere", "TestStoriesThatAreLeftOutAreThere", "TestThePageAboutWritingActionsHasAllFormats", "TestTheJudgeOfServersCanFail",
	"TestPlanOfBlights",
}

// chooseLength makes a run tell the core stories, or all others. Whoever names stories with -run or -skip gets those, and three servers
// are there for all.
func chooseLength() error {
	if several3.on {
		return nil
	}
	for _, name := range []string{"test.run", "test.skip", "test.list"} {
		if flag.Lookup(name).Value.String() != "" {
			return nil
		}
	}
	if *tellLong {
		return flag.Set("test.skip", exactly(coreStories))
	}
	fmt.Fprintln(os.Stderr, "e2e: all stories but the core are left to `make stories`; e2e/core_test.go says which are the core.")
	return flag.Set("test.run", exactly(coreStories))
}

func TestCoreStoriesAreThere(t *testing.T) {
	t.Parallel()
	there := storyNames(t)
	for _, name := range coreStories {
		// The parts of TestStories are files; those of others are seen when they are told.
		if story, _, _ := strings.Cut(name, "/"); !there[name] && (!there[story] || story == "TestStories") {
			t.Errorf("%s is a core story, and there is no such one", name)
		}
	}
}
