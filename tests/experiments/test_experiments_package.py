import subprocess
import sys

from bezoar import experiments


def test_public_names_exist_and_say_what_they_are():
    homes = [name for names in experiments._HOMES.values() for name in names]
    assert sorted(homes) == sorted(experiments.__all__) == dir(experiments)
    for name in experiments.__all__:
        found = getattr(experiments, name)
        assert not callable(found) or found.__doc__


def test_specs_and_the_store_need_no_torch():
    code = (
        "import sys\n"
        "from bezoar.experiments import RunSpec, Store, expand, provenance, run_key\n"
        "assert len(expand({'seed': [1, 2]})) == 2\n"
        "run_key(RunSpec())\n"
        "sys.exit('torch' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
