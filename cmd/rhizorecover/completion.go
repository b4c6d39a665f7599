package main

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Run prints a script made from the grammar, so that it never lags behind it.
//
//	bash:  source <(rhizorecover completion bash)
//	zsh:   rhizorecover completion zsh > "${fpath[1]}/_rhizorecover"
//	fish:  rhizorecover completion fish > ~/.config/fish/completions/rhizorecover.fish
func (c *completionCmd) Run(s *session) error {
	words := grammarOf(s.app)
	var script string
	switch c.Shell {
	case "bash":
		script = words.bash()
	case "zsh":
		script = words.zsh()
	case "fish":
		script = words.fish()
	}
	_, err := fmt.Fprint(s.out, script)
	return err
}

// words are what can stand on a command line.
type words struct {
	name     string
	globals  []word
	commands []command
}

type command struct {
	word
	flags  []word
	values []string // of its argument
}

type word struct {
	name, help string
	values     []string // nil: a switch, or any value
	file       bool
}

func grammarOf(app *kong.Application) words {
	w := words{name: app.Name, globals: flagsOf(app.Node)}
	for _, n := range app.Children {
		c := command{word: word{name: n.Name, help: n.Help}, flags: flagsOf(n)}
		for _, p := range n.Positional {
			c.values = enumOf(p)
		}
		w.commands = append(w.commands, c)
	}
	return w
}

func flagsOf(n *kong.Node) []word {
	var flags []word
	for _, f := range n.Flags {
		flags = append(flags, word{name: "--" + f.Name, help: f.Help, values: enumOf(f.Value), file: f.Name == "dsn-file"})
	}
	return flags
}

func enumOf(v *kong.Value) []string {
	if v.Enum == "" {
		return nil
	}
	return v.EnumSlice()
}

func names(list []word) string {
	all := make([]string, len(list))
	for i, w := range list {
		all[i] = w.name
	}
	return strings.Join(all, " ")
}

func (w words) bash() string {
	var b strings.Builder
	fmt.Fprintf(&b, "_%[1]s() {\n  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} cmd= word\n", w.name)
	b.WriteString("  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n    case $word in\n")
	for _, c := range w.commands {
		fmt.Fprintf(&b, "      %s) cmd=$word; break ;;\n", c.name)
	}
	b.WriteString("    esac\n  done\n  case $prev in\n    --dsn-file) COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n")
	for _, c := range w.commands {
		for _, f := range c.flags {
			if f.values != nil {
				fmt.Fprintf(&b, "    %s) COMPREPLY=($(compgen -W '%s' -- \"$cur\")); return ;;\n", f.name, strings.Join(f.values, " "))
			}
		}
	}
	b.WriteString("  esac\n  case $cmd in\n")
	for _, c := range w.commands {
		reply := strings.TrimSpace(strings.Join(c.values, " ") + " " + names(c.flags) + " " + names(w.globals))
		fmt.Fprintf(&b, "    %s) COMPREPLY=($(compgen -W '%s' -- \"$cur\")) ;;\n", c.name, reply)
	}
	all := make([]word, len(w.commands))
	for i, c := range w.commands {
		all[i] = c.word
	}
	fmt.Fprintf(&b, "    *) COMPREPLY=($(compgen -W '%s %s' -- \"$cur\")) ;;\n  esac\n}\ncomplete -F _%s %s\n",
		names(all), names(w.globals), w.name, w.name)
	return b.String()
}

func (w words) zsh() string {
	var b strings.Builder
	fmt.Fprintf(&b, "#compdef %[1]s\n_%[1]s() {\n  local -a commands\n  commands=(\n", w.name)
	for _, c := range w.commands {
		fmt.Fprintf(&b, "    '%s:%s'\n", c.name, quoted(c.help))
	}
	b.WriteString("  )\n  _arguments -C \\\n")
	for _, f := range w.globals {
		fmt.Fprintf(&b, "    %s \\\n", f.zsh())
	}
	b.WriteString("    '1:command:->command' '*::argument:->argument'\n  case $state in\n    command) _describe command commands ;;\n    argument)\n      case $words[1] in\n")
	for _, c := range w.commands {
		fmt.Fprintf(&b, "        %s) _arguments", c.name)
		for _, f := range append(append([]word{}, c.flags...), w.globals...) {
			b.WriteString(" " + f.zsh())
		}
		if c.values != nil {
			fmt.Fprintf(&b, " '1:value:(%s)'", strings.Join(c.values, " "))
		}
		b.WriteString(" ;;\n")
	}
	fmt.Fprintf(&b, "      esac ;;\n  esac\n}\n_%[1]s \"$@\"\n", w.name)
	return b.String()
}

func (f word) zsh() string {
	text := fmt.Sprintf("'%s[%s]", f.name, strings.NewReplacer("[", "(", "]", ")").Replace(quoted(f.help)))
	switch {
	case f.file:
		text += ":file:_files"
	case f.values != nil:
		text += ":value:(" + strings.Join(f.values, " ") + ")"
	}
	return text + "'"
}

func (w words) fish() string {
	var b strings.Builder
	line := func(condition string, f word) {
		fmt.Fprintf(&b, "complete -c %s%s -l %s -d '%s'", w.name, condition, strings.TrimPrefix(f.name, "--"), quoted(f.help))
		switch {
		case f.file:
			b.WriteString(" -r -F")
		case f.values != nil:
			fmt.Fprintf(&b, " -x -a '%s'", strings.Join(f.values, " "))
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "complete -c %s -f\n", w.name)
	for _, f := range w.globals {
		line("", f)
	}
	for _, c := range w.commands {
		fmt.Fprintf(&b, "complete -c %s -n __fish_use_subcommand -a %s -d '%s'\n", w.name, c.name, quoted(c.help))
		within := fmt.Sprintf(" -n '__fish_seen_subcommand_from %s'", c.name)
		if c.values != nil {
			fmt.Fprintf(&b, "complete -c %s%s -a '%s'\n", w.name, within, strings.Join(c.values, " "))
		}
		for _, f := range c.flags {
			line(within, f)
		}
	}
	return b.String()
}

// quoted fits a help text between single quotes of any of the shells.
func quoted(text string) string { return strings.ReplaceAll(text, "'", "’") }
