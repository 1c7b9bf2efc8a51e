package cli

var actionCommand = noun{
	use: "action", short: "Write modules for nodes, and try their actions",
	verbs: []declared{actionNew, actionTry, actionImport},
}
