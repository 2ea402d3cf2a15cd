"""Three questions about generated support tickets, with known outcomes."""

from sys1bench.generators import get_generator

from evaluation import check, check_thresholds, evaluate, group_of, share

TICKETS = 1500
MODEL = "sparrow/nano"


def questions_of(item):
    questions = {}
    for name, question in item.questions.items():
        questions[name] = {"type": question.type, "instructions": question.instructions}
        if question.type == "choice":
            questions[name]["criteria"] = {option.key: option.description for option in question.criteria}
        elif question.type == "score":
            questions[name]["criteria"] = [level.description for level in question.criteria]
    return questions


def run(gateway):
    items = get_generator("support_tickets", n=TICKETS, seed=1).generate()
    found, results = {}, {}
    for name, question in questions_of(items[0]).items():
        labelled = [(item.state, {name: item.questions[name].ground_truth}) for item in items]
        results[name], shown = evaluate(gateway, name.replace("_", "-"), {name: question}, labelled, [MODEL])
        found[name] = group_of(shown, name, MODEL)
    for name, expected in {"queue": 0.64, "is_angry": 0.70, "priority": 0.28}.items():
        right = share(found[name])
        check(abs(right - expected) < 0.05, f"{name} is {right:.3f} right, about {expected}")
    for name in ("is_angry", "priority"):
        finding = found[name]["finding"]
        check(finding.startswith("no threshold"), f"{name}: {finding}")
    accepted = check_thresholds(gateway, results["queue"], found["queue"], 0.9, 0.25)
    check(0.2 < accepted < 0.5, f"about a third is accepted: {accepted:.2f}")
