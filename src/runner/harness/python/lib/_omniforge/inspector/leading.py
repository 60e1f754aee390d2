"""The imports at the top of a module that nothing stands before which could change what they do."""

import ast


def imports(tree):
    """Each module with the names that are taken from it, up to the first statement that does anything else."""
    found = []
    for node in tree.body:
        if isinstance(node, ast.Import):
            found.extend([alias.name, []] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                break
            if node.module != "__future__":
                found.append([node.module, [alias.name for alias in node.names]])
        elif not _does_nothing(node):
            break
    return found


def _does_nothing(node):
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.Assign):
        return isinstance(node.value, ast.Constant) and all(isinstance(one, ast.Name) for one in node.targets)
    return False
