def test_number_is_padded(submission):
    assert submission.call("labels:label", "ops", 42) == "OPS/00042"
    assert submission.call("labels:label", "ops", 123456) == "OPS/123456"
