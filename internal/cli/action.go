package cli

var actionCommand = noun{
	use: "action", short: "Have modules of nodes do something, and write modules",
	verbs: []declared{asking{actionRun}, asking{actionStatus}, asking{actionList}, asking{actionShow}, actionNew, actionTry, actionImport},
}
