package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"herald/gateway/command"
	"herald/platforms/slack"
)

func slackCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "slack", Short: "Set a Slack app up"}
	cmd.AddCommand(slackManifestCmd())
	return cmd
}

func slackManifestCmd() *cobra.Command {
	var o slack.ManifestOptions
	var file, longFile string
	var slashes bool
	cmd := &cobra.Command{
		Use: "manifest", Short: "Write the manifest that makes the Slack app", Args: cobra.NoArgs,
		Long: `Write an app manifest: every command, and exactly the permissions and events that Herald uses. Paste it at
https://api.slack.com/apps (Create New App, From a manifest), or into App Manifest of the app that is there
already; after a change there, install the app again.

Slack takes 50 commands of an app, and none that has the name of a command of its own. What is left out works
as "/herald name", and every command works as "!name", which is also how commands are typed in threads.`,
		Example: "  herald slack manifest --write slack-manifest.json\n  herald slack manifest --slashes-only",
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Commands = command.New(command.Services{}).Infos()
			if longFile != "" {
				text, err := os.ReadFile(longFile)
				if err != nil {
					return err
				}
				o.LongDescription = string(text)
			}
			out, err := slack.Manifest(o)
			if err != nil {
				return err
			}
			if slashes {
				if out, err = json.MarshalIndent(slack.SlashCommands(o.Commands), "", "  "); err != nil {
					return err
				}
				out = append(out, '\n')
			}
			if file == "" {
				_, err = cmd.OutOrStdout().Write(out)
				return err
			}
			if err := os.WriteFile(file, out, 0o644); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s is written; paste it at https://api.slack.com/apps\n", file)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&file, "write", "", "write to this file and not to the terminal")
	f.Lookup("write").NoOptDefVal = "slack-manifest.json"
	f.BoolVar(&slashes, "slashes-only", false, "only the list of slash commands, for an app that is there already")
	f.BoolVar(&o.AgentView, "agent-view", false, "show the app as an agent, with threads of its own")
	f.StringVar(&o.Name, "name", "Herald", "the app's name, at most 35 characters")
	f.StringVar(&o.LongDescription, "long-description", "", "text of the app's page, 175 to 4000 characters")
	f.StringVar(&longFile, "long-description-file", "", "file with that text")
	cmd.MarkFlagsMutuallyExclusive("long-description", "long-description-file")
	return cmd
}
