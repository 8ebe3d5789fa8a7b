def test_words_are_joined(submission):
    assert submission.call("slugs:slug", " Hello,  World 2! ") == "hello-world-2"
    assert submission.call("slugs:slug", "...") == ""
