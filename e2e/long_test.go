package e2e_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var tellLong = flag.Bool("long", false, "tell the long stories, and no others: make stories")

// longStories are told by `make stories` and left out by `make test`, whose stories have to be told within minutes on two cores. Beside each
// stand the tests of `make test` that hold what it promises: other stories, and tests of packages. Decision 0048 says what makes a story long.
var longStories = map[string]string{
	"TestABackupBringsAServerBack":              "TestKilledBackupsAndRestores, internal/store/backup TestAFileBringsEverythingBack",
	"TestABackupOfServersUnderLoad":             "TestKilledBackupsAndRestores, internal/store/backup TestASweepWaitsForABackup",
	"TestALostPostgreSQLIsSaidAndComesBack":     "TestChaosOfServers, internal/server TestStatusOfADatabaseThatIsSilent",
	"TestASharedCertificateIsRenewed":           "TestAnAgentRenewsItsCertificate, TestJoinSharesOneCertificate",
	"TestAServerMovesThereAndBack":              "internal/store/move TestAMoveIsKilledAtEveryStep, internal/store/sql TestRecordsMove",
	"TestAServerThatOnlyCompiles":               "TestChaosOfServers, internal/compile TestTwoDispatchersShareAQueue",
	"TestASiteGoesOnWithoutTheDatabase":         "internal/checkin/near TestNothingAcknowledgedIsLostOrDoubled, internal/checkin/near TestNothingOlderThanWhatANodeHas",
	"TestAStockAgentHasWhatWasReleased":         "TestWhatWasPreviewedIsReleased, TestAStockAgentWithoutARelease",
	"TestAgentsAndEngines":                      "TestAnAgentOfPuppet8, TestWhatTheTwoPuppetsCompile",
	"TestAnApplicationRunsInOrder":              "TestStories/applications, internal/appgraph TestAnyFleetHasAnOrderOrACircle",
	"TestAnEmptiedSiteManifestIsHeld":           "TestStories/held, internal/server TestACatalogThatLostAllIsHeldFromAStockAgent",
	"TestAnEngineIsUpgradedUnderAServer":        "internal/compiler/ruby TestAnUpgradeStartsTheEngineAnew",
	"TestCatalogsAreAppliedOnSchedule":          "TestScheduledRunsThatOnlyShow, internal/agent/schedule TestDecideHoldsAlways",
	"TestCertificatesThatAreNoGood":             "TestWrongCertificatesOverPCP, internal/pki TestAPeerWhoseCertificateEndedIsRefused",
	"TestChaosOfReleases":                       "TestKillServer, internal/release TestEndsWhateverStopsTheServer",
	"TestCodeForOneEngineOnly":                  "TestWhatTheTwoPuppetsCompile, internal/compiler/ruby TestEachVersionIsCompiledByItsEngine",
	"TestCollectingFailsAsInPuppet":             "TestNodesCollectWhatOthersExport, internal/compiler/ruby TestCollectedCatalogsEqualTheStockCompilers",
	"TestContentOfSeveralServersMoves":          "TestContentInAnS3Store, internal/store/move TestSumsSayWhatDiffers",
	"TestDemo":                                  "TestReleasesInWavesAndBack, TestActionsOnRealNodes",
	"TestExchangedDatabasesAreRefused/postgres": "TestExchangedDatabasesAreRefused/sqlite, internal/pki TestTheCAForgetsNothing",
	"TestFilebucket":                            "internal/protocol/puppet TestBucketRoundTrip, internal/protocol/puppet TestBackupPathOverTheWire",
	"TestFleetAsksAtOnce":                       "TestSlowCompile, internal/compile TestServiceCrowd",
	"TestFollowingAJobOverACrashOfTheServer":    "TestKillServer, TestChaos",
	"TestFromPuppet7To8":                        "TestAnAgentOfPuppet8, TestWhatTheTwoPuppetsCompile",
	"TestGroupsDecideWhatANodeGets":             "TestStories/groups, internal/server TestAChangeOfGroupsCountsAtOnce",
	"TestHalfAPackageIsNoEngine":                "internal/compiler/ruby TestAGemForAnotherRubyIsNamed, internal/compiler/ruby TestRubyThatDoesNotStart",
	"TestJoinMakesTheFirstRun":                  "TestJoinSharesOneCertificate, TestAgentConverges",
	"TestJoinSaysWhatIsInTheWay":                "TestJoinSharesOneCertificate, internal/cli TestWhichPuppetSharesACertificate",
	"TestKilledMoves":                           "internal/store/move TestAMoveIsKilledAtEveryStep",
	"TestLegacyFacts":                           "TestLegacyFactsWhereVariablesAreStrict, TestAnAgentOfPuppet8",
	"TestLinksOutOfTheDirectory":                "internal/code TestLinksOutAreNamed, internal/code TestLinksOutAreFollowed",
	"TestMCollectivesCommands":                  "TestActionsOnRealNodes, internal/cli TestEveryHabitOfMCollective",
	"TestNoiseOfTheEngine":                      "TestWhatTheTwoPuppetsCompile, internal/preview TestNodesThatChangeInNoiseOfTheEngine",
	"TestOpenVoxIsFoundWhereItsPackagesPutIt":   "TestTheAgentWithPuppetsCertificate, internal/agent TestRubyOfPackagesIsReplacedWhereItIsMissing",
	"TestPoliciesStopReleases":                  "TestStories/policies, internal/release TestFreeze",
	"TestPreviewsInCI":                          "TestStories/previews",
	"TestPuppetserverKeepsInTutti":              "TestPuppetDBClients",
	"TestRollingRestartBehindALoadBalancer":     "TestChaosOfServers, internal/server TestAgentsAreNotTakenWhileBrowsersFinish",
	"TestRunawayCompiles":                       "internal/compiler/ruby TestTimeLimit, internal/compiler/ruby TestMemoryLimit, internal/server TestEndlessLoopsDoNotHoldUpOthers",
	"TestShellsComplete":                        "internal/cli TestEverythingIsCompletedOrSaysWhyNot, internal/cli TestCompletionsWithoutAServer",
	"TestStories/agentjobs":                     "TestStories/jobs, TestStories/agent",
	"TestStories/compilequeue":                  "internal/compile TestEveryCompilationEnds",
	"TestStories/deploychecks":                  "TestCodeErrors, internal/codecheck TestOnlyWhatDiffersIsRead",
	"TestStories/inputs":                        "internal/server TestReusedCatalogsEqualFreshOnes, internal/compiler/ruby TestWhatIsReadIsNoted",
	"TestStories/jobspage":                      "TestStories/jobs",
	"TestStories/lookup":                        "internal/compiler/ruby TestLookupsAreThoseOfPuppetLookup",
	"TestTheAgentBuildsElsewhere":               "TestTheServiceStartsTheServer",
	"TestTheCommandsOfTheDisasterPage":          "TestTheCommandsOfTheBackupPage",
	"TestThePageAboutCode":                      "TestStories/versions, TestStories/delivery",
	"TestThePageAboutHabits":                    "TestWhatIsSaid, internal/cli TestSynonyms",
	"TestThePageAboutWritingActions":            "internal/action/skeleton TestSkeletonsWork, internal/agent/process TestANodeRunsAnExternalAgentOfChoria",
	"TestTheTutorial":                           "TestThePageAboutEnrolling, TestReleasesInWavesAndBack",
	"TestTwoServersShareTheWork":                "TestChaosOfServers",
	"TestWhatADeployAnnounces":                  "TestCodeFromGit, TestStories/versions",
}

// chooseLength leaves the long stories out of a run, or all others. Whoever names stories with -run or -skip gets those, and three servers
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
	names := exactly(slices.Sorted(maps.Keys(longStories)))
	if *tellLong {
		return flag.Set("test.run", names)
	}
	fmt.Fprintf(os.Stderr, "e2e: %d long stories are left to `make stories`; e2e/long_test.go says which.\n", len(longStories))
	return flag.Set("test.skip", names)
}

func TestLongStoriesAreThere(t *testing.T) {
	t.Parallel()
	there := storyNames(t)
	for name, short := range longStories {
		if !isStory(there, name) {
			t.Errorf("%s is a long story, and there is no such one", name)
		}
		for place := range strings.SplitSeq(short, ", ") {
			if !holds(t, there, place) {
				t.Errorf("%s: its promise is said to be held by %q, which is not there, or long itself", name, place)
			}
		}
	}
	if len(longStories) > len(there)/2 {
		t.Errorf("%d of %d stories are long", len(longStories), len(there))
	}
}

// isStory says whether there is a story of a name, or one with such a part. The parts of TestStories are files, and there as such.
func isStory(there map[string]bool, name string) bool {
	story, _, _ := strings.Cut(name, "/")
	return there[name] || there[story] && story != "TestStories"
}

// holds says whether a test is there, and told by make test: a story, or one of a package.
func holds(t *testing.T, there map[string]bool, place string) bool {
	t.Helper()
	dir, name, ofPackage := strings.Cut(place, " ")
	if !ofPackage {
		return longStories[place] == "" && isStory(there, place)
	}
	files, err := filepath.Glob(filepath.Join("..", dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		return err == nil && strings.Contains(string(text), "\nfunc "+name+"(t *testing.T)")
	})
}
