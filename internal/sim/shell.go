package sim

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// effect is what a made-up program does.
type effect struct {
	stdout, stderr string
	exitCode       int
	takes          time.Duration
}

// shell is a small made-up shell: commands apart by semicolons and lines, their words
// apart by spaces. Redirections are passed over: a simulated node has no files.
// A program that it does not know is not found, as in any shell.
func shell(host, line string) effect {
	var sum effect
	for command := range strings.FieldsFuncSeq(line, func(r rune) bool { return r == ';' || r == '\n' }) {
		words := strings.Fields(strings.Split(command, ">")[0])
		if len(words) == 0 {
			continue
		}
		e := shellWord(host, words[0], words[1:])
		sum.stdout += e.stdout
		sum.stderr += e.stderr
		sum.takes += e.takes
		if sum.exitCode = e.exitCode; words[0] == "exit" {
			break
		}
	}
	return sum
}

func shellWord(host, name string, args []string) effect {
	switch name {
	case "true", ":":
		return effect{}
	case "false":
		return effect{exitCode: 1}
	case "echo":
		return effect{stdout: strings.Join(args, " ") + "\n"}
	case "hostname":
		return effect{stdout: host + "\n"}
	case "whoami":
		return effect{stdout: "root\n"}
	case "uname":
		return effect{stdout: "Linux\n"}
	case "uptime":
		days := 1 + len(host)*7%90
		return effect{stdout: fmt.Sprintf(" 12:00:00 up %d days,  1:02,  0 users,  load average: 0.%02d, 0.05, 0.01\n", days, days)}
	case "exit":
		return effect{exitCode: int(number(args, 0)) & 0xff}
	case "sleep":
		return effect{takes: time.Duration(number(args, 0) * float64(time.Second))}
	}
	return effect{stderr: "sh: 1: " + name + ": not found\n", exitCode: 127}
}

// maxNumber bounds what a command may say, so that a sleep ends.
const maxNumber = 86_400

// number is the first argument.
func number(args []string, otherwise float64) float64 {
	if len(args) == 0 {
		return otherwise
	}
	n, err := strconv.ParseFloat(strings.Trim(args[0], `"'`), 64)
	if err != nil || n < 0 || n > maxNumber {
		return otherwise
	}
	return n
}
