"""`holdfast fitness`: is a live surface fit to hold consumed keys?"""
