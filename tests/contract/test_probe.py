from talk import *
import clew
def test_delete_with_prompt(profile):
    c = profile.create(prompt="p", toolset=({"name":"t"},))
    talk(c, "a","b")
    profile.delete(c.id)
