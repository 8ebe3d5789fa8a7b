import os

os.execv('/bin/true', ['true'])
