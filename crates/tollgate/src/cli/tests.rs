use clap::{CommandFactory, Parser};

use super::*;

fn parse(line: &str) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(std::iter::once("tollgate").chain(line.split_whitespace()))
}

#[test]
fn definition_passes_checks_of_parser() {
    Cli::command().debug_assert();
}

#[test]
fn global_options_are_accepted_in_any_position() {
    for line in [
        "--json --config c.toml key create --name n",
        "key --json create --config c.toml --name n",
        "key create --name n --config c.toml --json",
    ] {
        let cli = parse(line).unwrap();
        assert!(cli.global.json, "{line}");
        assert_eq!(cli.global.config.unwrap().to_str(), Some("c.toml"), "{line}");
        assert!(
            matches!(cli.command, Command::Key(Resource { command: KeyCommand::Create(args), .. }) if args.name.as_deref() == Some("n")),
            "{line}"
        );
    }
}

#[test]
fn documented_commands_are_parsed() {
    for line in [
        "serve",
        "serve --config f",
        "demo",
        "demo --exit",
        "demo --verbose",
        "demo --exit --verbose",
        "key create --management --name a",
        "key create --workspace w --limit-usd 2.50 --limit-reset weekly --expires-at 2027-01-01T00:00:00Z",
        "key list",
        "key list --management",
        "key disable h",
        "key enable h",
        "key delete h",
        "guardrail create --name g --workspace w",
        "key create --rpm 60 --tpm 1000 --limit-usd 1 --limit-reset never",
        "key update h --name n --limit-usd 1 --limit-reset daily --rpm 1 --tpm 1 --expires-at 2027-01-01T00:00:00Z",
        "key update h --no-limit --no-rpm --no-tpm --no-expiry",
        "key show h",
        "guardrail create --from f.json",
        "guardrail create --name g --from -",
        "guardrail update g --from f.json",
        "guardrail versions g",
        "guardrail restore g 3",
        "guardrail unassign g h1 -",
        "guardrail default g",
        "guardrail default --none",
        "guardrail default --none --workspace w",
        "guardrail explain g --from f.json --key k",
        "ask a/b --question q --state s",
        "ask a/b --question q --options x,y --state-file - --key-file f",
        "ask a/b --question q --levels x,y --state s",
        "ask a/b --from f.json",
        "guardrail list",
        "preset create triage --from f.json --workspace w",
        "preset list --workspace w",
        "preset show triage",
        "preset designate triage 2",
        "preset archive triage",
        "preset activate triage",
        "labels versions gen-dec-a refund",
        "guardrail show g",
        "guardrail delete g",
        "guardrail assign g h1 h2",
        "guardrail assign g -",
        "workspace create --name w",
        "workspace rename w --name x",
        "workspace delete w",
        "workspace delete w --with keys,documents,guardrails,destinations",
        "workspace list",
        "workspace credit w --add-usd 5",
        "workspace credit w --add-usd -5",
        "workspace credit --add-usd 5",
        "workspace credit --workspace w --add-usd 5",
        "workspace unlimited",
        "workspace unlimited w",
        "workspace budget --daily 1",
        "workspace budget w --daily 1 --weekly 2 --monthly none --lifetime 3",
        "workspace rates w --rpm 60",
        "workspace rates --tpm none",
        "workspace show",
        "workspace show w",
        "workspace suspend w",
        "workspace resume w",
        "container put c p/q.txt file.txt --workspace w",
        "container list c",
        "catalogue import - --replace --yes",
        "catalogue import f.json --replace --dry-run",
        "catalogue import f.json",
        "catalogue list",
        "catalogue show a/b:free",
        "endpoint list",
        "endpoint list --model a/b",
        "provider test p",
        "provider test p --model m",
        "usage list --limit 5",
        "usage list --workspace w --key h --since 2027-01-01 --until 2027-01-31T00:00:00Z --csv",
        "usage list --provider p --status failed",
        "store copy --from sqlite://a.db --to postgres://u@h/d",
        "store copy --from sqlite://a.db --to sqlite://b.db --accept-problems",
        "usage sum --by key",
        "usage sum --by workspace",
        "usage sum --by provider",
        "usage sum --by user",
        "usage sum --by reason --key k",
        "usage sum --by day --workspace w --since 2027-01-01",
        "usage show gen-dec-1",
        "destination create --name n --type webhook --endpoint u --secret-file f --workspace w",
        "destination create --from f.json",
        "destination update d --enabled false --privacy-mode true --from -",
        "destination delete d",
        "destination test d",
        "audit list --limit 5",
        "audit list --actor a --action key. --subject s --since 2027-01-01",
        "eval report --results f",
        "eval report --preset p --workspace w --since 2027-01-01 --until 2027-02-01 --url http://h --key-file f",
        "audit verify",
        "audit verify --anchor 7:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff",
        "serve --no-migrate",
        "serve --allow-no-endpoints",
        "migrate up",
        "migrate status",
        "status",
        "doctor",
        "config check",
        "config init",
        "config init f.toml",
        "openapi",
    ] {
        assert!(parse(line).is_ok(), "{line}: {}", parse(line).unwrap_err());
    }
}

#[test]
fn contradictory_options_are_rejected() {
    for line in [
        "",
        "key create --limit-reset daily",
        "key create --limit-usd 1 --limit-reset yearly",
        "key create --rpm 0",
        "key update",
        "key update h --limit-usd 1 --no-limit",
        "key update h --limit-reset daily --no-limit",
        "key update h --rpm 1 --no-rpm",
        "key update h --tpm 0",
        "key update h --expires-at 2027-01-01T00:00:00Z --no-expiry",
        "guardrail update g",
        "preset create triage",
        "preset designate triage",
        "guardrail restore g",
        "guardrail restore g one",
        "guardrail default",
        "guardrail default g --none",
        "guardrail default g --workspace w",
        "workspace delete w --with everything",
        "workspace rename w",
        "workspace rates w",
        "workspace show w --workspace w",
        "guardrail assign g",
        "workspace credit w",
        "usage list --limit 0",
        "usage list --csv --json",
        "usage list --status broken",
        "usage sum",
        "usage sum --by week",
        "audit verify --anchor 7",
    ] {
        assert!(parse(line).is_err(), "{line}");
    }
}

/// The page that documents the command line.
const PAGE: &str = include_str!("../../../../docs/cli.md");

/// Every command that can be run, with the words that lead to it.
fn leaves(command: &clap::Command, words: &str, found: &mut Vec<(String, clap::Command)>) {
    let mut below = command.get_subcommands().filter(|below| !below.is_hide_set()).peekable();
    if below.peek().is_none() {
        found.push((words.to_owned(), command.clone()));
    }
    for below in below {
        leaves(below, format!("{words} {}", below.get_name()).trim_start(), found);
    }
}

#[test]
fn every_command_is_documented() {
    let mut found = Vec::new();
    leaves(&Cli::command(), "", &mut found);
    assert!(found.len() > 30, "the walk found {} commands", found.len());
    for (words, command) in found {
        let documented = PAGE.split(&format!("`{words}")).skip(1).any(|rest| rest.starts_with(['`', ' ']));
        assert!(documented, "docs/cli.md lacks `{words}`");
        let options = command.get_arguments().filter(|argument| !argument.is_hide_set() && !argument.is_global_set());
        for option in options.filter_map(clap::Arg::get_long).filter(|option| *option != "help") {
            let documented = PAGE.split(&format!("--{option}")).skip(1).any(|rest| !rest.starts_with(is_of_a_word));
            assert!(documented, "docs/cli.md lacks `--{option}` of `{words}`");
        }
    }
}

fn is_of_a_word(character: char) -> bool {
    character == '-' || character.is_alphanumeric()
}

#[test]
fn every_documented_command_exists() {
    let mut rows = 0;
    for line in PAGE.lines().filter(|line| line.starts_with("| `")) {
        let cell = line.trim_start_matches("| ").split(" | ").next().unwrap_or_default();
        for text in cell.split('`').skip(1).step_by(2).filter(|text| text.starts_with(char::is_alphabetic)) {
            rows += 1;
            let mut command = Cli::command();
            for word in text.split(' ').take_while(|word| word.chars().all(|c| c.is_ascii_lowercase() || c == '-')) {
                let below = command.find_subcommand(word).cloned();
                assert!(below.is_some() || !command.has_subcommands(), "`{text}`: there is no command {word}");
                command = below.unwrap_or(command);
            }
            assert!(!command.has_subcommands(), "`{text}` is not a whole command");
        }
    }
    assert!(rows > 30, "the page was not understood: {rows} commands");
}

/// The commands of the shell blocks of a page: the words from `tollgate` to the end of the command.
fn shell_commands(page: &str) -> Vec<String> {
    let blocks = page.split("```sh\n").skip(1).filter_map(|rest| rest.split_once("\n```"));
    let lines = blocks.flat_map(|(block, _)| block.lines());
    let commands = lines.flat_map(|line| line.split(['(', ';']));
    commands
        .filter_map(|command| command.trim_start().strip_prefix("tollgate "))
        .filter_map(|command| command.split(['|', '>', ')', '&']).next())
        .map(|command| command.replace('"', ""))
        .collect()
}

#[test]
fn commands_of_the_readme_are_parsed() {
    let commands = shell_commands(include_str!("../../../../README.md"));
    assert!(commands.len() > 6, "the README was not understood: {commands:?}");
    for command in commands {
        assert!(parse(&command).is_ok(), "README.md: tollgate {command}");
    }
}

#[test]
fn server_is_chosen_in_any_position() {
    for line in ["key --url http://h list", "key list --url http://h --key-file f"] {
        let Command::Key(Resource { server, .. }) = parse(line).unwrap().command else { panic!("another command") };
        assert_eq!(server.url.as_deref(), Some("http://h"), "{line}");
    }
    let line = "destination create --name n --endpoint http://d --url http://h";
    let Command::Destination(Resource { server, .. }) = parse(line).unwrap().command else { panic!("another command") };
    assert_eq!(server.url.as_deref(), Some("http://h"));
    assert!(parse("ask a/b --question q --state s --key-file f").is_ok());
    assert!(parse("provider add openai --key-file f").is_ok());
}
