def test_ticket_without_team(submission):
    assert submission.call("labels:label", "", 7) == "DESK/00007"
